"""What the figures and claims measure: pure functions from bandits and datasets to numbers."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling.bandits import BernoulliBandit, LinearGaussianBandit
from doublesampling.rules.choose import baselines
from doublesampling.rules.compiled import plain

FloatArray = NDArray[np.float64]

_ROBUST_ROUNDS = 3


class Estimate(NamedTuple):
    """A number and its Monte Carlo standard error."""

    value: float
    error: float

    def __sub__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value - other.value, math.hypot(self.error, other.error))


def bernoulli_divergence(bandit: BernoulliBandit) -> float:
    """The least KL(f_a || f_a*) over the arms that are not the best."""
    best = max(bandit.probabilities)
    return min(plain(baselines.bernoulli_divergence)(p, best) for p in bandit.probabilities if p < best)


def linear_divergence(bandit: LinearGaussianBandit) -> float:
    """KL between two arms of equal noise, averaged over contexts that are uniform on the unit cube."""
    gap = np.asarray(bandit.weights)[0] - np.asarray(bandit.weights)[1]
    second_moment = np.full((gap.size, gap.size), 0.25) + np.eye(gap.size) / 12.0
    return float(gap @ second_moment @ gap / (2.0 * float(np.max(bandit.noise)) ** 2))


def divergence_as_published(bandit: LinearGaussianBandit) -> float:
    """The x axis of the published figure 6: its authors divided the squared gap by sigma, not by sigma^2."""
    return linear_divergence(bandit) * float(np.max(bandit.noise))


def one_arm_dominates(bandit: LinearGaussianBandit) -> bool:
    """Whether one arm is better in every context of the unit cube: its weights are nowhere smaller."""
    gap = np.asarray(bandit.weights)[0] - np.asarray(bandit.weights)[1]
    return bool((gap >= 0.0).all() or (gap <= 0.0).all())


def final(data: xr.Dataset, policy: str, bandit: int = 0, name: str = "cumulative_regret") -> Estimate:
    """A variable at the last recorded step, with its error."""
    cell = data.sel(policy=policy).isel(bandit=bandit, time=-1)
    return Estimate(float(cell[name]), float(cell[f"{name}_error"]))


def relative_difference(data: xr.Dataset, ours: str, rival: str) -> tuple[FloatArray, FloatArray]:
    """Delta = R_ours / R_rival - 1 of every bandit at the last step, and its error; float arrays (bandit).

    From expected regrets: the same mean as the observed ones, with far less noise. Policies meet the same luck, so the
    error, which takes them as independent, is on the safe side.
    """
    last = data.isel(time=-1)
    mine, theirs = (last.cumulative_regret.sel(policy=name).values for name in (ours, rival))
    my_error, their_error = (last.cumulative_regret_error.sel(policy=name).values for name in (ours, rival))
    ratio = mine / theirs
    return ratio - 1.0, np.hypot(my_error, ratio * their_error) / theirs


def paired_difference(data: xr.Dataset, ours: str, rival: str) -> tuple[FloatArray, FloatArray]:
    """The same from every realization's regret: policies met the same luck, so most of the noise cancels."""
    mine, theirs = (data.final_regret.sel(policy=name).values for name in (ours, rival))
    ratio = mine.mean(axis=1) / theirs.mean(axis=1)
    noise = (mine - ratio[:, None] * theirs).std(axis=1, ddof=1) / math.sqrt(mine.shape[1])
    return ratio - 1.0, noise / theirs.mean(axis=1)


def mean_within(values: FloatArray, errors: FloatArray, chosen: NDArray[np.bool_]) -> Estimate:
    """The mean over some bandits."""
    count = max(int(chosen.sum()), 1)
    return Estimate(float(values[chosen].mean()), float(np.sqrt((errors[chosen] ** 2).sum()) / count))


def by_divergence(data: xr.Dataset, ours: str, rival: str, edges: tuple[float, ...]) -> list[tuple[int, Estimate]]:
    """How many bandits lie between two edges of the divergence, and their mean Delta."""
    delta, error = relative_difference(data, ours, rival)
    kl = data.kl.values
    inside = [(kl >= low) & (kl < high) for low, high in itertools.pairwise(edges)]
    return [(int(chosen.sum()), mean_within(delta, error, chosen)) for chosen in inside]


def lowess(x: FloatArray, y: FloatArray, share: float = 0.3) -> FloatArray:
    """Cleveland's smooth curve through points, at each x: local lines with tricube weights, robust by bisquares."""
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    size = max(min(math.ceil(share * x.size), x.size), 2)
    trust, smooth = np.ones(x.size), np.empty(x.size)
    for _ in range(_ROBUST_ROUNDS + 1):
        for i in range(x.size):
            distance = np.abs(x - x[i])
            reach = np.partition(distance, size - 1)[size - 1]
            weight = trust * np.clip(1.0 - (distance / max(reach, 1e-300)) ** 3, 0.0, None) ** 3
            weight[distance == 0.0] = trust[distance == 0.0]
            total = weight.sum()
            centre = (weight @ x) / total
            spread = weight @ (x - centre) ** 2
            slope = (weight * (x - centre)) @ y / spread if spread > 1e-12 * total else 0.0
            smooth[i] = (weight @ y) / total + slope * (x[i] - centre)
        residual = np.abs(y - smooth)
        scale = 6.0 * np.median(residual)
        if scale <= 0.0:
            break
        trust = np.maximum(np.clip(1.0 - (residual / scale) ** 2, 0.0, None) ** 2, 1e-12)
    out = np.empty(x.size)
    out[order] = smooth
    return out
