"""Assumed truths of a trial as the rules take them: what each arm pays, drift, delay and dropout."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.bandits import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    PoissonBandit,
)
from doublesampling.beliefs import BetaBernoulli, DirichletCategorical, GammaExponential, GammaPoisson, Gaussian
from doublesampling.checks import shown
from doublesampling.delays import Delay
from doublesampling.errors import SettingError
from doublesampling.rules.trials.bundles import TrialWorld

FloatArray = NDArray[np.float64]

# which bandit a list of numbers stands for, and between which bounds its means may drift
_BANDITS: dict[type, Any] = {
    BetaBernoulli: BernoulliBandit,
    GammaPoisson: PoissonBandit,
    GammaExponential: ExponentialBandit,
    Gaussian: GaussianBandit,
    DirichletCategorical: CategoricalBandit,
}
_BOUNDS: dict[type, tuple[float, float]] = {
    BetaBernoulli: (0.0, 1.0),
    GammaPoisson: (0.0, 1e6),
    GammaExponential: (1e-30, 1e30),
    Gaussian: (-1e50, 1e50),
}


class Circumstances(NamedTuple):
    """What is assumed of a trial beside the arms."""

    delay: Delay
    dropout: float
    trend: Any


def simulated_belief(belief: Any) -> type:
    """Return the class of a belief that trials can be simulated with, or say which ones can."""
    if type(belief) not in _BANDITS:
        names = ", ".join(kind.__name__ for kind in _BANDITS)
        raise SettingError(f"Trials are simulated with the beliefs {names}, got {shown(belief)}.")
    return type(belief)


def name_scenarios(truths: object) -> dict[Any, Any]:
    """Return scenarios by their name, or by their number."""
    named: dict[Any, Any]
    if isinstance(truths, Mapping):
        named = {str(name): truth for name, truth in truths.items()}
    elif isinstance(truths, (list, tuple, np.ndarray)):
        named = dict(enumerate(truths))
    else:
        raise SettingError(f"truths must list scenarios, such as [[0.3, 0.3], [0.3, 0.5]], got {shown(truths)}.")
    if not named:
        raise SettingError("truths must list at least one scenario, such as [[0.3, 0.3]], got none.")
    if any(np.ndim(truth) == 0 and isinstance(truth, (int, float, np.number)) for truth in named.values()):
        raise SettingError(f"truths must be a list of scenarios; for one, write [{shown(truths)}].")
    return named


def make_world(belief: Any, truth: Any, given: Circumstances) -> TrialWorld:
    """Return a scenario as the rules take it."""
    kind = simulated_belief(belief)
    bandit = _bandit(belief, kind, truth)
    if bandit.arms != belief.arms:
        raise SettingError(f"A truth needs one number per arm ({belief.arms}), got {bandit.arms}: {shown(truth)}.")
    nothing, arms = np.empty((0, 0)), belief.arms
    delay = (given.delay.fixed, given.delay.cumulative, given.dropout)
    drift = np.zeros(arms) if given.trend is None else np.ones(arms) * checks.per_arm(
        "trend", given.trend, arms, least=-1e50, most=1e50
    )  # fmt: skip
    if kind is DirichletCategorical:
        if belief.values != bandit.values:
            raise SettingError(f"The belief knows the values {belief.values}, the truth pays {bandit.values}.")
        if drift.any():
            raise SettingError("trend is for outcomes with a mean that can move; categories have none. Leave it out.")
        chances, values = np.array(bandit.probabilities), np.array(bandit.values)
        return TrialWorld(chances @ values, np.zeros(arms), drift, chances, values, *delay)
    means = np.array(bandit.probabilities if kind is BetaBernoulli else bandit.means)
    low, high = _BOUNDS[kind]
    ends = means + drift
    if ends.min() < low or ends.max() > high:
        raise SettingError(
            f"trend moves the expected outcomes from {shown(means.tolist())} to {shown(ends.tolist())}, outside "
            f"{low:g} to {high:g}. Choose a smaller trend."
        )
    noise = np.ones(arms) * np.asarray(getattr(bandit, "noise", 0.0))
    return TrialWorld(means, noise, drift, nothing, np.empty(0), *delay)


def _bandit(belief: Any, kind: type, truth: Any) -> Any:
    """Return the bandit of a truth that is given as one, or by the expected outcome of every arm."""
    wanted = _BANDITS[kind]
    if isinstance(truth, wanted):
        return truth
    if not isinstance(truth, (Sequence, np.ndarray)) or isinstance(truth, str):
        raise SettingError(f"A truth is a list with one number per arm, or a {wanted.__name__}, got {shown(truth)}.")
    if kind is DirichletCategorical:
        return CategoricalBandit(truth, values=belief.values)
    if kind is Gaussian:
        noise = belief.known_noise
        if np.isnan(noise).any():
            raise SettingError(
                "This belief does not know the noise: pass truths such as GaussianBandit([0, 1], noise=2)."
            )
        return wanted(truth, noise=tuple(noise.tolist()))
    return wanted(truth)
