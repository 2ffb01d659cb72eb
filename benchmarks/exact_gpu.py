"""Exact regrets on a GPU: the Bayes optimum and policies to long horizons. Run it where there is an NVIDIA GPU.

python benchmarks/exact_gpu.py            # T = 60 (checked against the CPU), 200, 500, 1000, 1500
python benchmarks/exact_gpu.py 1500       # some horizons
"""

import platform
import sys
import time

import numpy as np
from numba import cuda

import doublesampling as ds

PUBLISHED = {60: 1.43766, 100: 1.74825, 200: 2.23925, 500: 3.02352, 1000: 3.7286, 1500: 4.18883}
PAIRS = [(0.85, 0.9), (0.45, 0.5), (0.3, 0.9)]


def policies(horizon: int) -> dict[str, object]:
    return {
        "Thompson sampling": ds.ThompsonSampling(),
        "double sampling, the paper's N": ds.DoubleSampling(samples=None),
        "double sampling, horizon": ds.DoubleSampling(samples=None, horizon=horizon),
        "double sampling, any time": ds.DoubleSampling.anytime(samples=None),
        "greedy": ds.Greedy(),
    }


def compare_with_the_cpu() -> None:
    """Print the largest difference between both devices at T = 60."""
    worst = abs(ds.bayes_optimal(60, device="cuda").regret - ds.bayes_optimal(60).regret)
    for policy in policies(60).values():
        for theta in (None, PAIRS):
            found = [np.asarray(ds.exact_regret(policy, 60, theta=theta, device=d)) for d in ("cuda", "cpu")]
            worst = max(worst, float(np.abs(found[0] - found[1]).max()))
    print(f"T = 60: GPU and CPU differ by at most {worst:.1e}")


def main(horizons: list[int]) -> None:
    name = cuda.get_current_device().name  # type: ignore[no-untyped-call]
    print(f"{name.decode() if isinstance(name, bytes) else name}, Python {platform.python_version()}")
    compare_with_the_cpu()
    for horizon in horizons:
        began = time.perf_counter()
        best = ds.bayes_optimal(horizon, device="cuda")
        seconds = time.perf_counter() - began
        known = f", published {PUBLISHED[horizon]}" if horizon in PUBLISHED else ""
        print(
            f"T = {horizon}: optimal regret {best.regret:.5f}{known}, successes {best.successes:.9f}, {seconds:.1f} s"
        )
        for label, policy in policies(horizon).items():
            began = time.perf_counter()
            regret = ds.exact_regret(policy, horizon, device="cuda")
            seconds = time.perf_counter() - began
            at = ds.exact_regret(policy, horizon, theta=PAIRS, device="cuda")
            listed = ", ".join(f"{pair}: {value:.2f}" for pair, value in zip(PAIRS, at, strict=True))
            print(f"    {label:32s} {regret:.5f} ({regret / best.regret - 1:+.1%}), {seconds:.1f} s; {listed}")


if __name__ == "__main__":
    main([int(value) for value in sys.argv[1:]] or [200, 500, 1000, 1500])
