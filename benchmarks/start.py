"""How long a new process takes to start: run by ``make bench``."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

COMMANDS = {
    "import doublesampling": "import doublesampling",
    "import, and touch every public name": "import doublesampling as ds; [getattr(ds, n) for n in ds.__all__]",
    "doublesampling --help": "from doublesampling.cli.main import main; main(['--help'])",
    "first decision of a process (machine code on disk)": (
        "import doublesampling as ds; b = ds.BetaBernoulli(arms=2); ds.decide(ds.DoubleSampling(), b, b.prior())"
    ),
}


SIMULATION = (
    "import doublesampling as ds; ds.simulate(ds.BernoulliBandit([0.4, 0.8]), [ds.DoubleSampling(), "
    "ds.ThompsonSampling(), ds.BayesUCB()], horizon=100, realizations=64, seed=1, device='cpu')"
)


def seconds(code: str, cache: str | None = None) -> float:
    """Wall time of a fresh interpreter that runs the code, with machine code kept in its usual folder or another."""
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


if __name__ == "__main__":
    nothing = statistics.median(seconds("pass") for _ in range(5))
    print(f"{'a bare interpreter':52s} {nothing:6.2f} s")
    for name, code in COMMANDS.items():
        seconds(code)
        print(f"{name:52s} {statistics.median(seconds(code) for _ in range(5)):6.2f} s")
    with tempfile.TemporaryDirectory() as empty:
        print(f"{'first simulation on a machine, compiling':52s} {seconds(SIMULATION, empty):6.2f} s")
        later = statistics.median(seconds(SIMULATION, empty) for _ in range(5))
        print(f"{'first simulation of the next process':52s} {later:6.2f} s")
