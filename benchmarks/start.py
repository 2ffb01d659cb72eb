"""How long a new process takes to start, with and without machine code on disk: run by ``make bench``.

``python benchmarks/start.py OLD/src NEW/src`` compares source trees in turns. Every figure is the median of some
processes: seconds of wall time, and of processor time, which a busy machine disturbs less. "On a machine" means an
empty folder for machine code. What NumPy, Numba and xarray take by themselves is printed, too: no run of ours is
quicker.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

_DECIDE = "import doublesampling as ds; b = ds.BetaBernoulli(arms=2); ds.decide(ds.DoubleSampling(), b, b.prior())"
_SIMULATE = (
    "import doublesampling as ds; ds.simulate(ds.BernoulliBandit([0.4, 0.8]), [ds.DoubleSampling(), "
    "ds.ThompsonSampling(), ds.BayesUCB()], horizon=100, realizations=64, seed=1, device='cpu')"
)
COMMANDS = {
    "a bare interpreter": "pass",
    "import doublesampling": "import doublesampling",
    "import, and touch every public name": "import doublesampling as ds; [getattr(ds, n) for n in ds.__all__]",
    "doublesampling --help": "from doublesampling.cli.main import main; main(['--help'])",
    "import NumPy and Numba": "import numpy, numba",
    "import NumPy, Numba and xarray": "import numpy, numba, xarray",
    "the same, compile x + 1 and make a Dataset": (
        "import numpy, numba, xarray; numba.njit('f8(f8)')(lambda x: x + 1.0); "
        "xarray.Dataset({'a': ('x', numpy.ones(2))})"
    ),
}
FIRST = {"decision, two Beta arms": _DECIDE, "simulation, three policies on a Bernoulli bandit": _SIMULATE}


class Seconds(NamedTuple):
    """Of a process."""

    wall: float
    processor: float


def run(code: str, source: str | None, cache: str | None = None) -> Seconds:
    """Run code in a new interpreter, with machine code kept in its usual folder or another."""
    changes = {"PYTHONPATH": source, "NUMBA_CACHE_DIR": cache}
    environment = os.environ | {name: value for name, value in changes.items() if value is not None}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(sources: list[str | None], rounds: int) -> dict[tuple[str, str | None], list[Seconds]]:
    """Run every command in every source tree, in turns."""
    found: dict[tuple[str, str | None], list[Seconds]] = {}
    for _ in range(rounds):
        for source in sources:
            for name, code in COMMANDS.items():
                found.setdefault((name, source), []).append(run(code, source))
            for name, code in FIRST.items():
                with tempfile.TemporaryDirectory() as empty:
                    found.setdefault((f"first on a machine: {name}", source), []).append(run(code, source, empty))
                    found.setdefault((f"next process: {name}", source), []).append(run(code, source, empty))
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sources", nargs="*", help="source trees to compare; the one that is installed where none is given"
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources: list[str | None] = options.sources or [None]
    print("| | source | wall, s | processor, s |\n| --- | --- | ---: | ---: |")
    for (name, source), times in measure(sources, options.rounds).items():
        wall, processor = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"| {name} | {source or 'installed'} | {wall:.2f} | {processor:.2f} |")


if __name__ == "__main__":
    main()
