"""Measure how often intervals of ds.analyse and ds.sequence hold the truth on simulated logs of adaptive policies.

``python -m benchmarks.coverage`` prints every table of docs/how-to/inference.md; ``--logs 200`` is a rehearsal. The
formulas are written here a second time, over many logs at once, and compared with ds.analyse and ds.sequence on some
of them.
"""

import argparse
import datetime
import math
import os
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

import doublesampling as ds
from benchmarks.coverage_logs import (
    ANYTIME,
    BERNOULLI,
    DOUBLE_SAMPLING,
    EQUAL,
    GAUSSIAN,
    THOMPSON,
    UNIFORM_NOISE,
    Cell,
    Logs,
    simulate_logs,
)
from doublesampling.inference.decision_log import DecisionLog
from doublesampling.inference.streaming import FEWEST, FEWEST_EACH_SIDE, LARGEST_BET, mixture_parameter

FloatArray = NDArray[np.float64]

METHODS = ("aw-aipw", "aw-aipw, stick-breaking", "aipw", "ips", "naive")
LEVELS = (0.95, 0.90)
BLOCK = 100
FLOORS = {"0": (0.0, 0.0), "0.05": (0.05, 0.0), "0.1": (0.1, 0.0), "t^-0.7 / K": (1.0, 0.7)}
POLICIES = {"Thompson": THOMPSON, "double sampling, horizon": DOUBLE_SAMPLING, "double sampling, any time": ANYTIME}
TRUTHS: dict[tuple[str, int, str], tuple[float, ...]] = {
    ("Bernoulli", 2, "equal"): (0.5, 0.5),
    ("Bernoulli", 2, "unequal"): (0.4, 0.6),
    ("Bernoulli", 3, "equal"): (0.5, 0.5, 0.5),
    ("Bernoulli", 3, "unequal"): (0.4, 0.5, 0.6),
    ("Gaussian", 2, "equal"): (0.0, 0.0),
    ("Gaussian", 2, "unequal"): (0.0, 0.5),
    ("Gaussian", 3, "equal"): (0.0, 0.0, 0.0),
    ("Gaussian", 3, "unequal"): (0.0, 0.25, 0.5),
}
LAWS = {"Bernoulli": BERNOULLI, "Gaussian": GAUSSIAN}


class Found(NamedTuple):
    """Estimates of many logs: estimate, standard error and degrees of freedom, float arrays (log)."""

    estimate: FloatArray
    error: FloatArray
    freedom: FloatArray

    def covers(self, truth: float, level: float) -> Any:
        """Return whether each interval holds the truth."""
        reach = special.stdtrit(self.freedom, 0.5 + level / 2.0) * self.error
        return np.abs(self.estimate - truth) <= reach

    def width(self, level: float) -> Any:
        """Return the width of each interval."""
        return 2.0 * special.stdtrit(self.freedom, 0.5 + level / 2.0) * self.error


def estimate(logs: Logs, arms: tuple[int, ...], method: str) -> Found:
    """Return the estimates of a contrast, or of an arm's mean, for all logs at once."""
    parts = [_arm(logs, arm, method) for arm in arms]
    signs = (1.0, -1.0)
    value = sum(sign * part[0] for sign, part in zip(signs, parts, strict=False))
    terms = sum(sign * part[1] for sign, part in zip(signs, parts, strict=False))
    variances = [(part[1] ** 2).sum(axis=1) for part in parts]
    below = sum(v**2 / np.maximum(part[2] - 1.0, 1.0) for v, part in zip(variances, parts, strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.nan_to_num(sum(variances) ** 2 / below, nan=np.inf)
    return Found(np.asarray(value), np.sqrt((np.asarray(terms) ** 2).sum(axis=1)), np.asarray(freedom))


def _before(values: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((len(values), 1)), values.cumsum(axis=1)[:, :-1]], axis=1)


def _arm(logs: Logs, arm: int, method: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value (log), terms whose squares sum to its variance (log, row), effective sample size (log)."""
    played, e = logs.arms == arm, logs.shares[:, :, arm]
    rows = played.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        if method == "naive":
            count = played.sum(axis=1).astype(float)
            mean = (logs.rewards * played).sum(axis=1) / count
            terms = played * (logs.rewards - mean[:, None]) / np.sqrt(count * (count - 1.0))[:, None]
            return mean, terms, count
        model = np.zeros_like(e)
        if method != "ips":
            count, total = _before(played.astype(float)), _before(played * logs.rewards)
            every = np.arange(rows, dtype=np.float64)
            start = np.where(every > 0, _before(logs.rewards) / every, 0.0)
            model = np.where(count > 0, total / count, start)
        scores = model + np.where(played, (logs.rewards - model) / e, 0.0)
        h = np.ones_like(e)
        if method.startswith("aw-aipw"):
            h = np.sqrt(e)
            if method.endswith("stick-breaking"):
                t = np.arange(1, rows + 1, dtype=np.float64)
                lost = 0.3 / (0.3 + rows * (t / rows) ** 0.7 - t)
                rate = np.clip((1.0 - e) * lost + e / (1.0 + rows - t), 0.0, 1.0)
                left = np.concatenate([np.ones((len(e), 1)), np.cumprod(1.0 - rate, axis=1)[:, :-1]], axis=1)
                h = np.sqrt(left * rate * e)
            h[:, 0] = 0.0
        total_weight = h.sum(axis=1, keepdims=True)
        value = (h * scores).sum(axis=1, keepdims=True) / total_weight
        w = np.where(played, h / e, 0.0)
        effective = w.sum(axis=1) ** 2 / (w**2).sum(axis=1)
    return value[:, 0], h * (scores - value) / total_weight, effective


def asymptotic_misses(logs: Logs, arms: tuple[int, ...], truth: float, level: float, optimal_at: float) -> Any:
    """Return whether the asymptotic sequence of each log misses the truth at any time."""
    shape = (len(logs.rewards), logs.rewards.shape[1])
    scores, least, predicted, shown = np.zeros(shape), np.ones(shape), np.zeros(shape), np.ones(shape, dtype=bool)
    seen = np.arange(1, shape[1] + 1)
    spread = (logs.rewards**2).cumsum(axis=1) / seen - (logs.rewards.cumsum(axis=1) / seen) ** 2
    for sign, arm in zip((1.0, -1.0), arms, strict=False):
        played, e = logs.arms == arm, logs.shares[:, :, arm]
        count, total = _before(played.astype(float)), _before(played * logs.rewards)
        with np.errstate(invalid="ignore", divide="ignore"):
            every = np.arange(e.shape[1], dtype=np.float64)
            start = np.where(every > 0, _before(logs.rewards) / every, 0.0)
            model = np.where(count > 0, total / count, start)
            scores += sign * (model + np.where(played, (logs.rewards - model) / e, 0.0))
        known, above = played.cumsum(axis=1), (played & (logs.rewards > model)).cumsum(axis=1)
        shown &= (known >= FEWEST) & (np.minimum(above, known - above) >= FEWEST_EACH_SIDE)
        sums, squared = (played * logs.rewards).cumsum(axis=1), (played * logs.rewards**2).cumsum(axis=1)
        variance = (squared - sums**2 / np.maximum(known, 1) + spread) / np.maximum(known, 1)
        with np.errstate(divide="ignore"):
            predicted += variance * ((1.0 / e).cumsum(axis=1) - 1.0 / e[:, :1])
        least = np.minimum(least, e)
    scores, predicted, least = scores[:, 1:], predicted[:, 1:], np.minimum.accumulate(least[:, 1:], axis=1)
    count = np.arange(1, scores.shape[1] + 1, dtype=np.float64)
    mean = scores.cumsum(axis=1) / count
    squares = np.maximum((scores**2).cumsum(axis=1) - count * mean**2, predicted)
    rho2, alpha = mixture_parameter(1.0 - level, optimal_at), 1.0 - level
    inside = squares * rho2 + 1.0
    reach = np.sqrt(2.0 * inside * np.log(np.sqrt(inside) / alpha) / (count**2 * rho2))
    shown = shown[:, 1:] & (least * count >= 1.0)
    return np.asarray((shown & (np.abs(mean - truth) > reach)).any(axis=1))


def bernstein_misses(logs: Logs, arms: tuple[int, ...], truth: float, level: float) -> FloatArray:
    """Return whether the non-asymptotic sequence of each log misses the truth at any time; rewards in [0, 1]."""
    alpha, ends = (1.0 - level) / (2 * len(arms)), []
    for arm in arms:
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(logs.arms == arm, 1.0 / logs.shares[:, :, arm], 0.0)
        low = np.maximum(_bound(weight * logs.rewards, alpha), 0.0)
        ends.append((low, np.minimum(1.0 - _bound(weight * (1.0 - logs.rewards), alpha), 1.0)))
    low, high = ends[0] if len(arms) == 1 else (ends[0][0] - ends[1][1], ends[0][1] - ends[1][0])
    return np.asarray(((truth < low) | (truth > high)).any(axis=1))


def _bound(scores: FloatArray, alpha: float) -> FloatArray:
    following = np.arange(1, scores.shape[1] + 1, dtype=np.float64)
    centre = np.minimum(1.0, (0.5 + _before(scores)) / following)
    away = (scores - centre) ** 2
    variance = (0.25 + _before(away)) / following
    bets = np.minimum(LARGEST_BET, np.sqrt(2.0 * math.log(1 / alpha) / (variance * following * np.log1p(following))))
    paid = (-np.log1p(-bets) - bets) * away
    return np.asarray(((bets * scores).cumsum(1) - math.log(1 / alpha) - paid.cumsum(1)) / bets.cumsum(1))


def check_package(logs: Logs, arms: tuple[int, ...], some: int = 3) -> None:
    """Raise AssertionError where ds.analyse gives other numbers than the formulas here."""
    for i in range(some):
        log = DecisionLog(
            tuple("abc"[: logs.shares.shape[2]]), logs.arms[i], logs.rewards[i], logs.shares[i],
            np.arange(1, logs.arms.shape[1] + 1),
        )  # fmt: skip
        for method in METHODS:
            one = Logs(logs.arms[i : i + 1], logs.rewards[i : i + 1], logs.shares[i : i + 1])
            if not usable(one, arms)[0]:
                continue
            mine = estimate(one, arms, method)
            name, _, kind = method.partition(", ")
            try:
                theirs = ds.analyse(log, arms, name, weights=kind or "constant")
            except ds.DoubleSamplingError:
                continue
            np.testing.assert_allclose(
                [mine.estimate[0], mine.width(0.95)[0]], [theirs.estimate, theirs.high - theirs.low], rtol=1e-6
            )


def usable(logs: Logs, arms: tuple[int, ...]) -> Any:
    """Return whether ds.analyse would accept each log: propensities of at least 1 / T, and five outcomes per arm."""
    least = logs.shares[:, :, list(arms)].min(axis=(1, 2))
    fewest = np.min([(logs.arms == arm).sum(axis=1) for arm in arms], axis=0)
    return np.asarray((least >= (1.0 - 1e-9) / logs.arms.shape[1]) & (fewest >= 5))


def share(values: Any) -> str:
    """Return a share in percent."""
    return f"{100.0 * np.mean(values):.1f}" if np.size(values) else "–"


def cells(rows: int, floor: str) -> Iterator[tuple[str, str, int, str, Cell]]:
    """Return every cell of the grid for one horizon and floor."""
    for policy, number in POLICIES.items():
        for (law, count, kind), means in TRUTHS.items():
            base, decay = FLOORS[floor]
            lowest = base / count if decay else base
            yield policy, law, count, kind, Cell(number, LAWS[law], means, rows, lowest, decay)


def contrast_of(cell: Cell) -> tuple[tuple[int, int], float]:
    """Return the contrast of the last arm with the first, and its true value."""
    last = len(cell.means) - 1
    return (last, 0), cell.means[last] - cell.means[0]


class Judged(NamedTuple):
    """What a block of logs gave, bool arrays: accepted (log), covered (method, level, log), missed (sequence, log)."""

    kept: Any
    covered: Any
    missed: Any


def judge(cell: Cell, logs: int, seed: int, check: bool) -> Judged:
    """Simulate a block of logs, small enough for the processor's cache, and judge every interval."""
    made = simulate_logs(cell, logs, seed)
    arms, truth = contrast_of(cell)
    if check:
        check_package(made, arms)
    found = [estimate(made, arms, method) for method in METHODS]
    covered = [[each.covers(truth, level) for level in LEVELS] for each in found]
    missed = [asymptotic_misses(made, arms, truth, 0.95, 500.0)]
    if cell.law == BERNOULLI:
        missed.append(bernstein_misses(made, arms, truth, 0.95))
    return Judged(usable(made, arms), np.array(covered), np.array(missed))


def grid_row(job: tuple[str, str, int, str, Cell], logs: int, seed: int) -> str:
    """One row of the table of a horizon and floor."""
    policy, law, count, kind, cell = job
    starts = range(0, logs, BLOCK)
    blocks = [judge(cell, min(BLOCK, logs - first), seed + first, first == 0) for first in starts]
    kept = np.concatenate([block.kept for block in blocks])
    covered = np.concatenate([block.covered for block in blocks], axis=2)
    missed = np.concatenate([block.missed for block in blocks], axis=1)
    parts = []
    for method, each in zip(METHODS, covered, strict=True):
        on = kept if method != "naive" else np.ones(logs, dtype=bool)
        parts.append(" / ".join(share(level[on]) for level in each))
    sequences = [share(each) for each in missed] + ["–"] * (2 - len(missed))
    head = f"{policy} | {law} | {count}, {kind} | {share(~kept)}"
    return f"| {head} | {' | '.join(parts)} | {' | '.join(sequences)} |"


def print_grid(rows: int, floor: str, logs: int, threads: int) -> None:
    """Print the coverage of every cell of one horizon and floor."""
    begun = time.monotonic()
    print(f"\n### T = {rows}, floor {floor}\n")
    names = " | ".join(METHODS)
    print(f"| policy | rewards | arms | refused | {names} | asymptotic sequence misses | empirical Bernstein misses |")
    print("|---|---|---|---:|" + "---:|" * (len(METHODS) + 2))
    with ThreadPoolExecutor(threads) as pool:
        for line in pool.map(lambda job: grid_row(job, logs, 1), list(cells(rows, floor))):
            print(line, flush=True)
    print(f"\n({time.monotonic() - begun:.0f} s)")


def print_published(logs: int) -> None:
    """Print the setup of Hadad et al. (2021): coverage of 90 % intervals."""
    print("\n### The setup of Hadad et al.: means 0.9, 1, 1.1, uniform noise ±1, Thompson sampling, floor t^-0.7 / 3\n")
    print("| T | target | " + " | ".join(METHODS) + " |\n|---:|---|" + "---:|" * len(METHODS))
    for rows in (1000, 5000):
        cell = Cell(THOMPSON, UNIFORM_NOISE, (0.9, 1.0, 1.1), rows, 1.0 / 3.0, 0.7)
        made = simulate_logs(cell, logs if rows == 1000 else max(logs // 4, 100), 1)
        targets: list[tuple[tuple[int, ...], float, str]] = [
            ((0,), 0.9, "mean of the worst arm"), ((2,), 1.1, "mean of the best arm"), ((2, 0), 0.2, "best - worst")
        ]  # fmt: skip
        for arms, truth, name in targets:
            found = [estimate(made, arms, method) for method in METHODS]
            text = [f"{share(each.covers(truth, 0.90))} (width {each.width(0.9).mean():.3f})" for each in found]
            print(f"| {rows} | {name} | {' | '.join(text)} |", flush=True)


def print_price(logs: int) -> None:
    """Print what adaptivity costs the analyst and gives the participants, beside equal allocation."""
    print("\n### Width of 95 % intervals of the difference, and successes gained, Bernoulli 0.4 and 0.6\n")
    print(
        "| T | policy | floor | width, aw-aipw | width, equal allocation | ratio | more successes per 100 decisions |"
    )
    print("|---:|---|---|---:|---:|---:|---:|")
    for rows in (200, 1000):
        equal = simulate_logs(Cell(EQUAL, BERNOULLI, (0.4, 0.6), rows, 0.0), logs, 7)
        usual = estimate(equal, (1, 0), "naive").width(0.95).mean()
        for policy, number in POLICIES.items():
            for floor in ("0.05", "0.1", "t^-0.7 / K"):
                base, decay = FLOORS[floor]
                made = simulate_logs(
                    Cell(number, BERNOULLI, (0.4, 0.6), rows, base / 2 if decay else base, decay), logs, 7
                )
                width = estimate(made, (1, 0), "aw-aipw").width(0.95).mean()
                gained = 100.0 * (made.rewards.mean() - equal.rewards.mean())
                print(
                    f"| {rows} | {policy} | {floor} | {width:.3f} | {usual:.3f} | {width / usual:.2f} | {gained:+.1f} |"
                )


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--floor", nargs="+", default=list(FLOORS), choices=list(FLOORS))
    parser.add_argument("--only", choices=("grid", "published", "price"))
    options = parser.parse_args()
    today = f"{datetime.date.today():%Y-%m-%d}"
    print(f"{today}, {platform.machine()}, {os.cpu_count()} cores, {options.logs} logs per row.")
    if options.only in (None, "grid"):
        for rows in options.rows:
            for floor in options.floor:
                print_grid(rows, floor, options.logs, options.threads)
    if options.only in (None, "published"):
        print_published(options.logs)
    if options.only in (None, "price"):
        print_price(options.logs)


if __name__ == "__main__":
    main()
