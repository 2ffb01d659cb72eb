"""The named tuples that kernels take: what is played, against what, from which prior, and where the results go."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Block(NamedTuple):
    """A block of realizations of one bandit, and which of its steps are recorded."""

    seed: np.uint64
    bandit: np.uint64
    first: int
    """The number of its first realization."""
    horizon: int
    columns: IntArray
    """(time): the column where a step is recorded, -1 for nowhere."""


class PolicySettings(NamedTuple):
    """The settings of a policy, whatever its kind; those that a kind does not have are not looked at."""

    samples: int
    """M, posterior samples for sampling one; 0 takes the exact probabilities."""
    cap: int
    """The largest N."""
    first_of_ties: bool
    false_alarm_rule: int
    """How p_FA is found, see choose/candidates.py."""
    rate: float
    """Candidates per unit of ln(1 / p_FA)."""
    horizon: float
    """nan where it is not known."""
    setting: float
    """The one number that some kinds have: epsilon, the share of the first arm, the width of a bound."""
    table: FloatArray
    """p_FA by two counts of the M samples, or N by one count for two arms (one column), or indices (prior, state)."""


class BernoulliWorld(NamedTuple):
    """Arms that pay 1 with a probability of their own."""

    means: FloatArray
    """(arm)"""


class StagedWorld(NamedTuple):
    """Arms whose means go through stages, again and again; a world that stays has one stage."""

    means: FloatArray
    """(stage, arm)"""
    every: int
    """Steps that a stage lasts."""


class LinearWorld(NamedTuple):
    """Arms whose reward depends on x^T w, where x is shown."""

    weights: FloatArray
    """(arm, entry of the context)"""
    noise: FloatArray
    """(arm)"""
    context: int
    """Where contexts come from, see worlds.py."""
    path: FloatArray
    """(time, entry): contexts that are given, walked through and begun again."""
    shared: bool
    """Whether all realizations see the same contexts."""
    pays: int
    """What x^T w is to the reward, see worlds.py."""


class CategoricalWorld(NamedTuple):
    """Arms that pay one of a few values."""

    chances: FloatArray
    """(arm, category)"""
    values: FloatArray
    """(category)"""


class BetaPrior(NamedTuple):
    """Beta laws, one per arm."""

    alpha: FloatArray
    beta: FloatArray
    track: FloatArray
    """The recurrence of two or three arms at the prior (optimal_arm/recurrence.py); empty where there is none."""


class PairPrior(NamedTuple):
    """Beta or Gamma laws that may forget: two numbers per arm."""

    first: FloatArray
    second: FloatArray
    discount: float


class WeightsPrior(NamedTuple):
    """Normal-Inverse-Gamma or normal laws of every arm's weights."""

    mean: FloatArray
    """(arm, weight)"""
    root: FloatArray
    """(arm, weight, weight): V = root root^T"""
    alpha: FloatArray
    beta: FloatArray
    noise: FloatArray
    """(arm): nan where it is learned."""
    sees_context: bool
    """Else the belief sees a constant 1."""
    anchors: FloatArray
    """What a belief that forgets returns to, see posterior.nig_forget; empty where nothing is forgotten."""


class DirichletPrior(NamedTuple):
    """Dirichlet laws of every arm's categories."""

    concentration: FloatArray
    """(arm, category)"""
    discount: float


class Record(NamedTuple):
    """Where a block leaves its results; rows and columns are named below."""

    means: FloatArray
    """(row, column): running means over the realizations."""
    squares: FloatArray
    """(2, column): squared deviations of the first two rows."""
    final: FloatArray
    """(realization): the regret at the end."""
    kept: FloatArray
    """(realization, time, column of a step): whole trajectories; empty where they are not kept."""


# rows of the moments: regret, observed regret, whether the best arm was played, N; from P_ROW on, p of every arm
REGRET, OBSERVED, CORRECT, NUMBER, P_ROW = range(5)
SQUARED_ROWS = 2  # the first two have a variance of their own
# columns of a kept step: the arm, the reward, N; from P_COLUMN on, p of every arm
ARM, PAID, CANDIDATES, P_COLUMN = range(4)


class Step(NamedTuple):
    """What one step of a realization left behind."""

    arm: int
    number: int
    paid: float
    correct: bool
    regret: float
    observed: float


class Scratch(NamedTuple):
    """Work space of one realization at a time, so that rules make no arrays. What is not needed is small."""

    parameters: FloatArray
    """(arm, 3): the marginals, see laws.py."""
    priors: FloatArray
    """(arm, 2): alpha and beta before any observation, for policies that count wins."""
    truth: FloatArray
    """(arm): what each arm is expected to pay."""
    p: FloatArray
    """(arm): how probably each arm is the best."""
    votes: IntArray
    values: FloatArray
    starts: FloatArray
    """(arm): where the search for a quantile ended last."""
    survey: FloatArray
    panel: FloatArray
    samples: FloatArray
    """(sample, arm): posterior draws."""
    tally: FloatArray
    """(arm + 4, arm): see choose/information_directed.py."""
    partial: FloatArray
    state: Any
    """What the belief keeps from step to step: one of the states below."""


class BetaState(NamedTuple):
    """What follows Beta arms from step to step: the recurrence, or densities at fixed nodes."""

    track: FloatArray
    panels: FloatArray
    notes: FloatArray
    alpha: FloatArray
    """The first two columns of the marginals: a view made once is quicker than one at every step."""
    beta: FloatArray


class WeightsState(NamedTuple):
    """The posterior of every arm's weights, and what the step shows."""

    mean: FloatArray
    root: FloatArray
    alpha: FloatArray
    beta: FloatArray
    shown: FloatArray
    """The context of the world."""
    seen: FloatArray
    """The context as the belief sees it."""
    work: FloatArray
    scaled: FloatArray


class DirichletState(NamedTuple):
    """The posterior of every arm's categories, and work space."""

    concentration: FloatArray
    shares: FloatArray


class NoState(NamedTuple):
    """For beliefs whose marginals are all there is to follow."""

    nothing: int = 0
