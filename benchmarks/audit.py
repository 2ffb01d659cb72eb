"""Measure the package against formulas that share no code with it: the table of docs/explanation/numerics.md.

``python benchmarks/audit.py``; names of sections choose some of them, and ``--seeds 2000`` is a rehearsal of the
propensities. Dirichlet arms make a tenth of these decisions, and policies without chance a thousand.
"""

import argparse
import datetime
import math
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from numpy.typing import NDArray

import doublesampling as ds
from doublesampling.rules import entry_points
from doublesampling.rules import laws as families
from tests import audit_laws, audit_propensities
from tests import independent as reference
from tests.chance import FALSE_ALARM

FloatArray = NDArray[np.float64]
Row = tuple[str, str, str, str]
"""What was looked at, in which range, by which independent method, and the largest error found."""


def relative_by_size(pairs: Iterable[tuple[FloatArray, FloatArray]], edges: Sequence[float]) -> list[float]:
    """The largest relative error of probabilities between neighbouring edges; pairs : (found, wanted)."""
    worst = [0.0] * (len(edges) - 1)
    for found, wanted in pairs:
        for p, q in zip(found.tolist(), wanted.tolist(), strict=True):
            for i, (low, high) in enumerate(zip(edges[1:], edges[:-1], strict=True)):
                if low <= q < high:
                    worst[i] = max(worst[i], abs(p / q - 1.0))
    return worst


SIZES = (1.0, 1e-3, 1e-6, 1e-9, 1e-13, 1e-15, 1e-20)


def _shown(worst: Sequence[float]) -> str:
    sizes = zip(SIZES[1:], worst, strict=True)
    return ", ".join(f"{error:.0e} from {low:.0e}" for low, error in sizes if error > 0.0)


def whole_betas(rng: np.random.Generator, arms: int) -> list[tuple[int, int]]:
    """Arms after 2 to 300 observations, at any rate."""
    seen = np.round(10.0 ** rng.uniform(0.3, 2.0 if arms > 3 else 2.5, arms)).astype(int)
    wins = np.round(seen * rng.uniform(size=arms)).astype(int)
    return [(1 + int(w), 1 + int(n - w)) for w, n in zip(wins, seen, strict=True)]


def tiny_probabilities(scale: int) -> Iterator[Row]:
    """Relative errors of P(best) by its size."""
    rng = np.random.default_rng(1)
    pairs = []
    for arms in (2, 3, 5, 10):
        for _ in range(6 * scale):
            arms_now = whole_betas(rng, arms)
            wanted = np.array([float(p) for p in reference.best_of_whole_betas(arms_now)])
            parameters = np.array([[a, b, 0.0] for a, b in arms_now], dtype=float)
            pairs.append((entry_points.exact_optimality(families.BETA, parameters), wanted))
    worst = _shown(relative_by_size(pairs, SIZES))
    yield "P(best), Beta, relative, by size of p", "2 to 10 arms, 2 to 300 observations", "exact fractions", worst
    for name, family, draw, law in (
        ("Student and normal", families.STUDENT, _student, reference.student_law),
        ("Gamma", families.GAMMA, _gamma, lambda a, b, _: reference.gamma_law(a, b)),
        ("inverse Gamma", families.INVERSE_GAMMA, _gamma, lambda a, b, _: reference.gamma_law(a, b, inverse=True)),
    ):
        pairs = []
        for _ in range(scale):
            parameters = np.array([draw(rng) for _ in range(int(rng.integers(2, 4)))])
            wanted = reference.best_of_laws([law(*row) for row in parameters.tolist()])
            pairs.append((entry_points.exact_optimality(family, parameters), wanted))
        worst = _shown(relative_by_size(pairs, SIZES))
        yield f"P(best), {name}, relative, by size of p", "2 and 3 arms", "mpmath, 40 digits", worst


def _student(rng: np.random.Generator) -> tuple[float, float, float]:
    return rng.normal() * 3.0, 10.0 ** rng.uniform(-2, 0), float(rng.choice([2.0, 5.5, 20.0, 1e3, 1e9, math.inf]))


def _gamma(rng: np.random.Generator) -> tuple[float, float, float]:
    shape = 1.0 + 10.0 ** rng.uniform(0, 3)
    return shape, shape / rng.uniform(1, 4), 0.0


def _power(rng: np.random.Generator, low: float = -6.0, high: float = 12.0) -> float:
    """A number between 1e-6 and 1e12, often one of the ends."""
    return float(10.0 ** rng.choice([low, high, rng.uniform(low, high), rng.uniform(low, high)]))


def extreme_priors(scale: int) -> Iterator[Row]:
    """Absolute errors of P(best) where parameters lie between 1e-6 and 1e12."""
    rng = np.random.default_rng(2)

    def nearby(low: float) -> tuple[float, float, float]:  # Gamma arms whose rewards overlap
        shape = max(_power(rng, low), 10.0**low)
        shift = math.exp(float(np.clip(rng.normal() / math.sqrt(shape), -20.0, 20.0)))
        return shape, min(max(shape * shift, 1e-6), 1e12), 0.0

    def student() -> tuple[float, float, float]:
        freedom = float(rng.choice([0.1, 1.0, 2.0, 1e3, 1e12, math.inf]))
        return rng.normal() * _power(rng, -6.0, 6.0), _power(rng, -6.0, 6.0), freedom

    kinds: list[tuple[str, int, Callable[[], tuple[float, float, float]], Callable[..., reference.Law], float]] = [
        ("Beta", families.BETA, lambda: (_power(rng), _power(rng), 0.0), lambda a, b, _: reference.beta_law(a, b), 80),
        ("Gamma", families.GAMMA, lambda: nearby(-6.0), lambda a, b, _: reference.gamma_law(a, b), 80),
        ("inverse Gamma", families.INVERSE_GAMMA, lambda: nearby(0.01),
         lambda a, b, _: reference.gamma_law(a, b, inverse=True), 80),
        ("Student, scales 1e-6 to 1e6", families.STUDENT, student, reference.student_law, 700),
    ]  # fmt: skip
    for name, family, draw, law, deepest in kinds:
        worst = 0.0
        for _ in range(scale):
            parameters = np.array([draw() for _ in range(int(rng.integers(2, 4)))])
            wanted = reference.best_of_laws([law(*row) for row in parameters.tolist()], deepest=deepest)
            worst = max(worst, float(np.abs(entry_points.exact_optimality(family, parameters) - wanted).max()))
        yield f"P(best), {name}, absolute", "parameters 1e-6 to 1e12, mixed", "mpmath, 40 digits", f"{worst:.0e}"


def simulated(scale: int) -> Iterator[Row]:
    """Absolute errors of P(best) in simulations after many steps."""
    worlds: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
        ("recurrence of two Beta arms", (0.5, 0.5), (1.0, 1e-6, 0.3, 1e5)),
        ("recurrence of three Beta arms", (0.5, 0.5, 0.49), (1.0, 1e-3, 0.3, 1e5)),
        ("carried densities of five Beta arms", (0.4, 0.5, 0.6, 0.55, 0.58), (1.0, 0.5, 0.01)),
    ]
    for name, truth, priors in worlds:
        steps = 10_000 * scale if len(truth) < 4 else 200 * scale
        for prior in priors:
            worst = 0.0
            arms, rewards, p = trajectory(prior, truth, steps)
            for t in np.unique(np.geomspace(10, steps - 1, 8).astype(int)):
                wins = np.bincount(arms[:t], rewards[:t], minlength=len(truth))
                losses = np.bincount(arms[:t], 1.0 - rewards[:t], minlength=len(truth))
                laws = [reference.beta_law(prior + w, prior + n) for w, n in zip(wins, losses, strict=True)]
                worst = max(worst, float(np.abs(p[t] - reference.best_of_laws(laws, deepest=60.0)).max()))
            looked = f"prior Beta({prior:g}, {prior:g}), 10 to {steps} steps"
            yield f"P(best), {name}, absolute", looked, "mpmath, 40 digits", f"{worst:.0e}"


def trajectory(prior: float, truth: Sequence[float], steps: int) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """The arms and rewards of Thompson sampling as the engine plays it, and P(best) before each decision."""
    belief = ds.BetaBernoulli(arms=len(truth), alpha=prior, beta=prior)
    policy = ds.DoubleSampling(samples=None, max_candidates=1)
    found = ds.simulate(ds.BernoulliBandit(truth), [policy], belief=belief, horizon=steps, realizations=1, seed=3,
                        keep="trajectories", times=[steps])  # fmt: skip
    one = found.isel(bandit=0, policy=0, realization=0)
    p = one.trajectory_probability_optimal.transpose(..., "arm").values
    return one.trajectory_arm.values.astype(np.int64), one.trajectory_reward.values, p


def propensities(scale: int, seeds: int) -> Iterator[Row]:
    """Recorded propensities against how often each arm is played."""
    count = sum(1 for _ in audit_propensities.cases())
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        found = []
        for one in pool.map(audit_propensities.measure, range(count), [seeds] * count):
            found.append(one)
            print(f"\rpropensities: {len(found)} of {count}", end="", file=sys.stderr, flush=True)
    for one in found:
        if one.p_value < FALSE_ALARM:
            print(f"propensities of {one.case} do not fit: {one.p_value:.1g}", file=sys.stderr, flush=True)
    for compiled, made in ((True, "decide_many"), (False, "decide, one by one")):
        some = [one for one in found if one.compiled is compiled]
        numbers = sorted({one.decisions for one in some}, reverse=True)
        looked = f"{len(some)} pairs of policy and state by {made}, {' or '.join(map(str, numbers))} decisions each"
        least = min(some, key=lambda one: one.p_value)
        yield "propensities", looked, "frequencies", f"smallest p-value {least.p_value:.1g} ({least.case})"


def logistic(scale: int) -> Iterator[Row]:
    """Laplace's logistic regression against the exact posterior."""
    for deviation in (1.0, 3.0):
        for size in (1, 2):
            for rows in (5, 20, 50):
                errors = np.array([audit_laws.logistic_errors(seed, rows, size, deviation) for seed in range(scale)])
                middle, worst = np.median(errors, axis=0), errors.max(axis=0)
                cells = ", ".join(
                    f"{name} {m:.3f} ({w:.2f})"
                    for name, m, w in zip(audit_laws.LOGISTIC_ERRORS, middle, worst, strict=True)
                )
                looked = f"prior deviation {deviation:g}, d = {size}, {rows} rewards per arm, {scale} histories"
                yield "logistic, median (largest)", looked, "quadrature over the weights", cells


SECTIONS: dict[str, Callable[..., Iterator[Row]]] = {
    "tiny": tiny_probabilities, "priors": extreme_priors, "simulated": simulated, "logistic": logistic,
    "candidates": audit_laws.candidates, "quantiles": audit_laws.quantiles, "draws": audit_laws.draws,
    "definitions": audit_laws.definitions, "propensities": propensities,
}  # fmt: skip


def main() -> None:
    """Print a table of the largest errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--scale", type=int, default=100, help="how many cases of each kind")
    asked = parser.parse_args()
    print(f"{datetime.date.today():%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores\n")
    print("| quantity | range looked at | independent method | largest error |\n| --- | --- | --- | --- |")
    for name, section in SECTIONS.items():
        if asked.sections and name not in asked.sections:
            continue
        began = time.perf_counter()
        for row in section(asked.scale, asked.seeds) if name == "propensities" else section(asked.scale):
            print(f"| {' | '.join(row)} |", flush=True)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
