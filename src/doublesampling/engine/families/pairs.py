"""Counts, waiting times, and Beta beliefs that forget: two numbers per arm, and a truth that may move."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.bandits import BernoulliBandit, ChangingBernoulliBandit, ExponentialBandit, PoissonBandit
from doublesampling.beliefs import BetaBernoulli, GammaExponential, GammaPoisson
from doublesampling.engine.families.common import Family, PackedPolicy, PackedProblem, panel_space, sample_space
from doublesampling.rules import pairs, play
from doublesampling.rules.compiled import plain
from doublesampling.rules.doors import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_WORLDS: dict[type, tuple[type, ...]] = {
    BetaBernoulli: (BernoulliBandit, ChangingBernoulliBandit),
    GammaPoisson: (PoissonBandit,),
    GammaExponential: (ExponentialBandit,),
}


@kernel
def play_pairs(
    seed: np.uint64, bandit: np.uint64, start: int, horizon: int,
    truths: FloatArray, every: int, family: int, prior_first: FloatArray, prior_second: FloatArray, discount: float,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
    parameters: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray, starts: FloatArray,
    survey: FloatArray, panel: FloatArray, sample: Any, priors: Any,
) -> None:  # fmt: skip
    """Play a block of realizations with Beta or Gamma beliefs.

    truths : float array (stage, arm), walked through and begun again; each stage lasts ``every`` steps. From
    parameters on: work space, see pairs_work. The rest as in beta.play_beta.
    """
    arms = truths.shape[1]
    first, second = parameters[:, 0], parameters[:, 1]
    for r in range(final.size):
        for a in range(arms):
            first[a], second[a], starts[a], p[a] = prior_first[a], prior_second[a], math.nan, math.nan
        regret = observed = 0.0
        for t in range(horizon):
            truth = truths[(t // every) % truths.shape[0]]
            best = truth[0]
            for a in range(arms):
                best = max(best, truth[a])
            address = (seed, bandit, np.uint64(start + r), np.uint64(t + 1))
            arm, number, paid = pairs.pairs_step(
                family, address, t + 1.0, truth, prior_first, prior_second, discount, whole, real, alarms, parameters,
                first, second, p, votes, values, starts, survey, panel, sample, priors,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            play.note(
                r, t, arm, paid, number, truth[arm] == best, regret, observed, p, columns, means, squares, kept
            )  # fmt: skip
        final[r] = regret


def pairs_work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    """The work space of play_pairs, in its order."""
    arms = problem.arms
    priors = np.column_stack(problem.prior[1:3]) if plain(play.counts_wins)(policy.kind) else None
    return (
        np.zeros((arms, 3)), np.empty(arms), np.empty(arms, dtype=np.int64), np.empty(arms), np.empty(arms),
        *panel_space(arms), sample_space(arms, policy), priors,
    )  # fmt: skip


def _pack(bandit: Any, belief: Any) -> PackedProblem:
    truths = bandit.probabilities if hasattr(bandit, "probabilities") else bandit.means
    first, second = belief.prior().pair
    prior = (belief.family, first.copy(), second.copy(), belief.discount)
    world = (np.atleast_2d(np.array(truths)), getattr(bandit, "every", 1))
    counts = isinstance(belief, BetaBernoulli) and belief.discount == 1.0
    return PackedProblem("pairs", bandit.arms, 1, world, prior, counts_wins=counts)


FAMILY = Family(
    name="pairs",
    defaults={
        PoissonBandit: lambda bandit: GammaPoisson(arms=bandit.arms),
        ExponentialBandit: lambda bandit: GammaExponential(arms=bandit.arms),
        ChangingBernoulliBandit: lambda bandit: BetaBernoulli(arms=bandit.arms),
    },
    beliefs=tuple(_WORLDS),
    takes=lambda bandit, belief: isinstance(bandit, _WORLDS.get(type(belief), ())),
    pack=_pack,
    kernel=play_pairs,
    work=pairs_work,
)
