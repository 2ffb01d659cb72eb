"""How long a new process takes to start: run by ``make bench``."""

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "import doublesampling": "import doublesampling",
    "import, and touch every public name": "import doublesampling as ds; [getattr(ds, n) for n in ds.__all__]",
    "doublesampling --help": "from doublesampling.cli.main import main; main(['--help'])",
    "first decision of a process (machine code on disk)": (
        "import doublesampling as ds; b = ds.BetaBernoulli(arms=2); ds.decide(ds.DoubleSampling(), b, b.prior())"
    ),
}


def seconds(code: str) -> float:
    """Wall time of a fresh interpreter that runs the code."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    nothing = statistics.median(seconds("pass") for _ in range(5))
    print(f"{'a bare interpreter':52s} {nothing:6.2f} s")
    for name, code in COMMANDS.items():
        seconds(code)
        print(f"{name:52s} {statistics.median(seconds(code) for _ in range(5)):6.2f} s")
