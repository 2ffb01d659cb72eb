"""Worlds that pay x^T w, under Gaussian and linear Gaussian beliefs."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.bandits import BernoulliBandit, GaussianBandit, LinearGaussianBandit, LogisticBandit
from doublesampling.beliefs import Gaussian, LinearGaussian
from doublesampling.engine.families.common import Family, PackedPolicy, PackedProblem, panel_space, sample_space
from doublesampling.errors import SettingError
from doublesampling.rules import lane, play, reward
from doublesampling.rules.doors import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def play_linear(
    seed: np.uint64, bandit: np.uint64, first: int, horizon: int,
    weights: FloatArray, noise: FloatArray, context_kind: int, path: FloatArray, shared: bool, pays: int,
    prior_mean: FloatArray, prior_root: FloatArray, prior_alpha: FloatArray, prior_beta: FloatArray,
    known_noise: FloatArray, sees_context: bool, anchors: Any,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, shown: FloatArray, seen: FloatArray,
    work: FloatArray, truth: FloatArray, parameters: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray,
    starts: FloatArray, survey: FloatArray, panel: FloatArray, scaled: Any, sample: Any,
) -> None:  # fmt: skip
    """Play a block of realizations with Normal-Inverse-Gamma or logistic beliefs, on any world that pays x^T w.

    weights : float array (arm, dimension of the world). A belief that does not see the context sees a constant 1.
    pays : what x^T w is to the reward, see rules/reward.py. anchors : see rules.belief.nig_forget; None where nothing
    is forgotten. From mean on: work space, see linear_work. The rest as in play_beta.
    """
    arms, size = prior_mean.shape
    for r in range(final.size):
        for a in range(arms):
            alpha[a], beta[a], starts[a], p[a] = prior_alpha[a], prior_beta[a], math.nan, math.nan
            for i in range(size):
                mean[a, i] = prior_mean[a, i]
                for j in range(size):
                    root[a, i, j] = prior_root[a, i, j]
        regret = observed = 0.0
        for t in range(horizon):
            address = (seed, bandit, np.uint64(first + r), np.uint64(t + 1))
            where = (seed, bandit, np.uint64(0) if shared else np.uint64(first + r), np.uint64(t + 1))
            arm, number, paid, best = lane.gaussian_step(
                address, where, weights, noise, context_kind, path, pays, known_noise, sees_context,
                whole, real, alarms, mean, root, alpha, beta, shown, seen, work, truth, parameters, p, votes, values,
                starts, survey, panel, scaled, anchors, sample,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            play.note(
                r, t, arm, paid, number, truth[arm] == best, regret, observed, p, columns, means, squares, kept
            )  # fmt: skip
        final[r] = regret


def linear_work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    """The work space of play_linear, in its order."""
    arms, size = problem.arms, problem.dimension
    return (
        np.empty((arms, size)), np.empty((arms, size, size)), np.empty(arms), np.empty(arms),
        np.empty(problem.world[0].shape[1]), np.ones(size), np.empty(size), np.empty(arms), np.empty((arms, 3)),
        np.empty(arms), np.empty(arms, dtype=np.int64), np.empty(arms), np.empty(arms),
        *panel_space(arms), None, sample_space(arms, policy),
    )  # fmt: skip


def check_dimension(bandit: Any, belief: Any) -> None:
    """A belief with contexts needs a world that shows them, of the same length."""
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
    arrays = [np.array(part) for part in (state.mean, state.root, state.alpha, state.beta)]
    forgets = belief.discount < 1.0
    prior = (*arrays, belief.known_noise, isinstance(belief, LinearGaussian), belief.anchors if forgets else None)
    return PackedProblem("linear", bandit.arms, state.mean.shape[1], pack_world(bandit), prior, on_device=not forgets)


def pack_world(bandit: Any) -> tuple[Any, ...]:
    """(weights, noise, context kind, path, shared, what it pays): every bandit as a linear one."""
    one = np.ones((1, 1))
    if isinstance(bandit, BernoulliBandit):
        means = np.array(bandit.probabilities)[:, None]
        return means, np.zeros(bandit.arms), reward.GIVEN, one, False, reward.PROBABILITY
    if isinstance(bandit, GaussianBandit):
        means = np.array(bandit.means)[:, None]
        return means, np.ones(bandit.arms) * np.asarray(bandit.noise), reward.GIVEN, one, False, reward.GAUSSIAN
    pays = reward.LOGIT if isinstance(bandit, LogisticBandit) else reward.GAUSSIAN
    noise = np.zeros(bandit.arms) if isinstance(bandit, LogisticBandit) else np.ones(bandit.arms) * bandit.noise
    kind = {"uniform": reward.UNIFORM, "normal": reward.NORMAL}.get(
        bandit.context if isinstance(bandit.context, str) else "", reward.GIVEN
    )
    path = np.ones((1, bandit.dimension))
    if not isinstance(bandit.context, str):
        path = np.atleast_2d(np.array(bandit.context))
    return np.array(bandit.weights), noise, kind, path, bandit.path == "shared", pays


FAMILY = Family(
    name="linear",
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
    kernel=play_linear,
    work=linear_work,
)
