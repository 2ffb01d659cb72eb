"""Print regrets of the hybrid and the separate linear model where arms share all weights but one, and where none."""

import argparse
import os
import platform
import time

import numpy as np

import doublesampling as ds

ARMS, ENTRIES = 4, 6


def bandit(shared: bool) -> ds.LinearGaussianBandit:
    """Return a bandit whose arms have intercepts of their own, and the other weights in common or not."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(ARMS, ENTRIES))
    if shared:
        weights[:, 1:] = weights[0, 1:]
    contexts = np.column_stack([np.ones(997), rng.normal(size=(997, ENTRIES - 1))])
    return ds.LinearGaussianBandit(weights=weights, noise=1.0, context=contexts)


def beliefs() -> dict[str, object]:
    """Return the models to compare."""
    return {
        "LinearGaussian": ds.LinearGaussian(arms=ARMS, dimension=ENTRIES),
        "HybridLinearGaussian(own=[0])": ds.HybridLinearGaussian(arms=ARMS, dimension=ENTRIES, own=[0]),
        "HybridLinearGaussian()": ds.HybridLinearGaussian(arms=ARMS, dimension=ENTRIES),
    }


def main() -> None:
    """Print one row per problem and model."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--horizon", type=int, default=150)
    options.add_argument("--realizations", type=int, default=64)
    given = options.parse_args()
    policies = {"double sampling": ds.DoubleSampling(horizon=given.horizon), "Thompson": ds.ThompsonSampling()}
    print(f"{platform.machine()}, {os.cpu_count()} cores, T = {given.horizon}, {given.realizations} realizations")
    print("| weights | belief | " + " | ".join(policies) + " | µs per decision |")
    for shared in (True, False):
        for name, belief in beliefs().items():
            began = time.process_time()
            found = ds.simulate(
                bandit(shared), policies, belief=belief, horizon=given.horizon, realizations=given.realizations, seed=1,
                threads=1, progress=False,
            )  # fmt: skip
            cells = [f"{row.regret:.1f} ± {row.error:.1f}" for row in found.ds.table().itertuples()]
            spent = (time.process_time() - began) / (len(policies) * given.horizon * given.realizations)
            told = "all but the intercept in common" if shared else "none in common"
            print(f"| {told} | `{name}` | {' | '.join(cells)} | {1e6 * spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()
