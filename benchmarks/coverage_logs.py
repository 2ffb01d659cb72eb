"""Simulate logs of adaptive policies with exact propensities, compiled: for benchmarks/coverage.py and its test."""

# ruff: noqa: NPY002 - compiled code has NumPy's former generator only

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.choose.candidates import AT_ANY_TIME, UNTIL_HORIZON, number_by_challenger
from doublesampling.rules.choose.propensities import ModeScratch, mode_scratch
from doublesampling.rules.choose.shares import share_modes
from doublesampling.rules.optimal_arm.recurrence import follow_three, follow_two, tracked_optimality

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

THOMPSON, DOUBLE_SAMPLING, EQUAL, ANYTIME = 0, 1, 2, 3
BERNOULLI, GAUSSIAN, UNIFORM_NOISE = 0, 1, 2
CAP = 1000
_POINTS = 34


class Cell(NamedTuple):
    """What is simulated: policy, kind of reward, means of the arms, decisions, and the floor under propensities."""

    policy: int
    law: int
    means: tuple[float, ...]
    rows: int
    floor: float
    decay: float = 0.0
    """The floor at decision t is floor * t^-decay."""


class Logs(NamedTuple):
    """Simulated logs: arms and rewards (log, row), propensities (log, row, arm)."""

    arms: IntArray
    rewards: FloatArray
    shares: FloatArray


class _Plain(NamedTuple):
    """A cell without its means, as compiled code takes it."""

    policy: int
    law: int
    rows: int
    floor: float
    decay: float


_njit: Any = numba.njit(nogil=True, cache=False)


@_njit  # type: ignore[untyped-decorator]
def _normal_optimality(mean: FloatArray, spread: FloatArray, p: FloatArray) -> None:
    """P(arm is best) for independent normal arms: two in closed form, more by the trapezoidal rule over each law."""
    if p.size == 2:
        p[0] = 0.5 * math.erfc((mean[1] - mean[0]) / math.sqrt(2.0 * (spread[0] ** 2 + spread[1] ** 2)))
        p[1] = 1.0 - p[0]
        return
    total = 0.0
    for a in range(p.size):
        p[a] = 0.0
        for k in range(_POINTS):
            z = -5.5 + 11.0 * k / (_POINTS - 1)
            term = math.exp(-0.5 * z * z)
            for b in range(p.size):
                if b != a:
                    term *= 0.5 * math.erfc(-(mean[a] + spread[a] * z - mean[b]) / spread[b] / math.sqrt(2.0))
            p[a] += term
        total += p[a]
    for a in range(p.size):
        p[a] /= total


@_njit  # type: ignore[untyped-decorator]
def _play(
    cell: Any, means: FloatArray, seed: int, space: ModeScratch, arms: IntArray, rewards: FloatArray, shares: FloatArray
) -> None:
    """Fill one log."""
    np.random.seed(seed)
    count, noise = means.size, 1.0 if cell.law == GAUSSIAN else math.sqrt(1.0 / 3.0)
    alpha, beta, track = np.ones(count), np.ones(count), np.zeros(12)
    if count == 2:
        track[0], track[1] = 0.5, 1.0 / 6.0
    else:
        track[:3], track[3:6], track[6:9], track[9:12] = 1.0 / 3.0, 1.0 / 6.0, 0.5, 0.2
    known, total = np.zeros(count), np.zeros(count)
    p = np.full(count, 1.0 / count)
    for t in range(cell.rows):
        if cell.policy != EQUAL:
            if cell.law == BERNOULLI:
                tracked_optimality(track, p)
            else:
                precision = known / noise**2 + 1.0
                _normal_optimality(total / noise**2 / precision, 1.0 / np.sqrt(precision), p)
        w = shares[t]
        w[:] = p
        if cell.policy in (DOUBLE_SAMPLING, ANYTIME):
            q, precisions = p / p.sum(), known + (2.0 if cell.law == BERNOULLI else noise**2)
            if cell.policy == ANYTIME:
                number = number_by_challenger(t + 1.0, q, precisions, AT_ANY_TIME, CAP)
            else:
                number = number_by_challenger(cell.rows - (t + 1.0), q, precisions, UNTIL_HORIZON, CAP)
            share_modes(number, q, False, space, w)
        floor = cell.floor * (t + 1.0) ** -cell.decay
        w[:] = floor + (1.0 - count * floor) * w / w.sum()
        u, arm = np.random.random(), 0
        while arm < count - 1 and u >= w[arm]:
            u -= w[arm]
            arm += 1
        if cell.law == BERNOULLI:
            reward = 1.0 if np.random.random() < means[arm] else 0.0
        elif cell.law == GAUSSIAN:
            reward = means[arm] + np.random.normal()
        else:
            reward = means[arm] + 2.0 * np.random.random() - 1.0
        arms[t], rewards[t] = arm, reward
        if cell.law == BERNOULLI:
            if count == 2:
                follow_two(alpha, beta, track, arm, reward > 0.5)
            else:
                follow_three(alpha, beta, track, arm, reward > 0.5)
            alpha[arm] += reward
            beta[arm] += 1.0 - reward
        known[arm] += 1.0
        total[arm] += reward


@_njit  # type: ignore[untyped-decorator]
def _play_all(
    cell: Any, means: FloatArray, seed: int, space: ModeScratch, arms: IntArray, rewards: FloatArray, shares: FloatArray
) -> None:
    for i in range(arms.shape[0]):
        _play(cell, means, seed + i, space, arms[i], rewards[i], shares[i])


def simulate_logs(cell: Cell, logs: int, seed: int) -> Logs:
    """Return so many simulated logs; the same seed gives the same."""
    means = np.array(cell.means)
    found = Logs(
        np.empty((logs, cell.rows), dtype=np.int64),
        np.empty((logs, cell.rows)),
        np.empty((logs, cell.rows, means.size)),
    )
    plain = _Plain(cell.policy, cell.law, cell.rows, cell.floor, cell.decay)
    _play_all(plain, means, seed, mode_scratch(CAP, means.size), *found)
    return found
