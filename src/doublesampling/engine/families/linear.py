"""Worlds that pay x^T w, under Gaussian and linear Gaussian beliefs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.bandits import BernoulliBandit, GaussianBandit, LinearGaussianBandit, LogisticBandit
from doublesampling.beliefs import Gaussian, LinearGaussian
from doublesampling.engine.families.common import Family
from doublesampling.engine.packed import PackedPolicy, PackedProblem
from doublesampling.errors import SettingError
from doublesampling.rules import laws, steps, worlds
from doublesampling.rules.bundles import LinearWorld, WeightsPrior, WeightsState

FloatArray = NDArray[np.float64]


def weights_state(problem: PackedProblem, policy: PackedPolicy, parameters: FloatArray) -> WeightsState:
    """Return the posterior of the weights that a realization changes in place, and what a step shows."""
    arms, size = problem.arms, problem.dimension
    return WeightsState(
        mean=np.empty((arms, size)),
        root=np.empty((arms, size, size)),
        alpha=np.empty(arms),
        beta=np.empty(arms),
        shown=np.empty(problem.world.weights.shape[1]),
        seen=np.ones(size),
        work=np.empty(size),
        scaled=np.empty(size),
    )


def check_dimension(bandit: Any, belief: Any) -> None:
    """Refuse a belief with contexts where the world shows none, or of another length."""
    if getattr(bandit, "dimension", None) != belief.dimension:
        found = f"contexts of {bandit.dimension}" if hasattr(bandit, "dimension") else "no context"
        raise SettingError(
            f"{type(belief).__name__} with dimension={belief.dimension} needs contexts of that length, "
            f"{type(bandit).__name__} shows {found}. Use Gaussian, or another dimension."
        )


def _pack(bandit: Any, belief: Gaussian | LinearGaussian) -> PackedProblem:
    if isinstance(belief, LinearGaussian):
        check_dimension(bandit, belief)
    state = belief.prior()
    mean, root, alpha, beta = (np.array(part) for part in (state.mean, state.root, state.alpha, state.beta))
    size = state.mean.shape[1]
    anchors = belief.anchors if belief.discount < 1.0 else np.empty((0, size + 1, size + 2))
    prior = WeightsPrior(mean, root, alpha, beta, belief.known_noise, isinstance(belief, LinearGaussian), anchors)
    return PackedProblem("linear", laws.STUDENT, bandit.arms, size, pack_world(bandit), prior)


def pack_world(bandit: Any) -> LinearWorld:
    """Return every bandit as a linear one."""
    one = np.ones((1, 1))
    if isinstance(bandit, BernoulliBandit):
        means = np.array(bandit.probabilities)[:, None]
        return LinearWorld(means, np.zeros(bandit.arms), worlds.GIVEN, one, False, worlds.PROBABILITY)
    if isinstance(bandit, GaussianBandit):
        means = np.array(bandit.means)[:, None]
        noise = np.ones(bandit.arms) * np.asarray(bandit.noise)
        return LinearWorld(means, noise, worlds.GIVEN, one, False, worlds.GAUSSIAN)
    pays = worlds.LOGIT if isinstance(bandit, LogisticBandit) else worlds.GAUSSIAN
    noise = np.zeros(bandit.arms) if isinstance(bandit, LogisticBandit) else np.ones(bandit.arms) * bandit.noise
    context = {"uniform": worlds.UNIFORM, "normal": worlds.NORMAL}.get(
        bandit.context if isinstance(bandit.context, str) else "", worlds.GIVEN
    )
    path = np.ones((1, bandit.dimension))
    if not isinstance(bandit.context, str):
        path = np.atleast_2d(np.array(bandit.context))
    return LinearWorld(np.array(bandit.weights), noise, context, path, bandit.path == "shared", pays)


FAMILY = Family(
    name="linear",
    step_code=lambda problem, policy, carries: (
        steps.FORGETTING_WEIGHTS if problem.prior.anchors.size else steps.WEIGHTS
    ),
    defaults={
        GaussianBandit: lambda bandit: Gaussian(arms=bandit.arms),
        LinearGaussianBandit: lambda bandit: LinearGaussian(arms=bandit.arms, dimension=bandit.dimension),
    },
    beliefs=(Gaussian, LinearGaussian),
    takes=lambda bandit, belief: (
        isinstance(bandit, BernoulliBandit | GaussianBandit | LinearGaussianBandit | LogisticBandit)
        and isinstance(belief, Gaussian | LinearGaussian)
    ),
    pack=_pack,
    state=weights_state,
)
