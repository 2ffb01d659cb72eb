"""Compare a simulated trial with adaptr's published one, and time it: ``python -m benchmarks.trials``."""

import argparse
import time

import doublesampling as ds

PUBLISHED = {
    "probability_superiority": 0.048,
    "probability_equivalence": 0.381,
    "probability_maximum": 0.571,
    "expected_size": 1749.6,
    "size_std": 373.7,
}
"""1000 trials in the README of the R package adaptr, 33 s on two workers there."""
NULL = [[0.75, 0.75, 0.75]]


def adaptr() -> ds.Trial:
    """Three arms with an undesirable outcome of probability 0.25; looks with a lag of 100 participants."""
    return ds.Trial(
        arms=["A", "B", "C"],
        belief=ds.BetaBernoulli(arms=3),
        policy=ds.ThompsonSampling(),
        allocation=ds.Allocation(minimum=0.2, update="look"),
        stopping=ds.Stopping(
            looks=range(300, 2001, 100),
            superiority=0.9814318,
            inferiority=0.0185682,
            equivalence=0.9,
            equivalence_margin=0.05,
        ),
        horizon=2000,
        delay=100,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--realizations", type=int, default=20_000)
    parser.add_argument("--calibrate", type=int, default=4000, metavar="R", help="realizations per threshold, 0: none")
    options = parser.parse_args()
    trial = adaptr()
    trial.simulate(NULL, realizations=2, equal=False)  # compile
    began, used = time.perf_counter(), time.process_time()
    trial.simulate(NULL, realizations=1000, equal=False)
    wall, processor = time.perf_counter() - began, time.process_time() - used
    print(f"1000 trials: {wall:.2f} s, {processor:.2f} s of processor time on all threads together")
    found = trial.simulate(NULL, realizations=options.realizations, seed=1, equal=False)
    print(f"{'':26} {'adaptr, 1000 trials':>20} {f'here, {options.realizations} trials':>24}")
    for name, published in PUBLISHED.items():
        value, error = float(found[name][0]), float(found[f"{name}_error"][0])
        print(f"{name:26} {published:20.4g} {value:14.4f} ± {error:.4f}")
    if options.calibrate:
        began = time.perf_counter()
        made = ds.calibrate(trial, NULL, mirror=True, realizations=options.calibrate, seed=3, tolerance=5e-4)
        print(f"{made}\n{len(made.steps)} thresholds tried in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
