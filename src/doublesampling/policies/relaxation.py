"""Information relaxation sampling."""

from typing import ClassVar

import numpy as np

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.evidence import Evidence
from doublesampling.policies.common import (
    Choice,
    CompiledPolicy,
    FloatArray,
    Rule,
    play_largest,
    rule_of,
    without_candidates,
)
from doublesampling.rules import finite_horizon
from doublesampling.rules.choose import kinds


@settings
class InformationRelaxation(CompiledPolicy):
    """Draw the rewards that each arm would pay until ``horizon``, and play the one that would look best; IRS.FH.

    A success probability is drawn from each posterior, and from it as many rewards as decisions follow; the arm whose
    posterior mean would then be the highest is played (Min, Maglaras and Moallemi, 2019). With many decisions left
    this is Thompson sampling, at the last decision it is greedy. Rewards of 0 and 1. Propensities are exact for two
    arms, and nan for more.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.InformationRelaxation(horizon=5), belief, state, seed=1).propensities.tolist()
    [0.0, 1.0]
    """

    kind: ClassVar[int] = kinds.RELAXATION
    counts_wins: ClassVar[bool] = True

    horizon: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", checks.integer("horizon", self.horizon, least=1, most=10**6))

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest simulated mean."""
        counts = evidence.beta_counts()
        values = finite_horizon.relaxed_means(counts, self.horizon, evidence.words)
        arm, _ = play_largest(values, "random", evidence.words)
        more = max(self.horizon - evidence.time, 0)
        return without_candidates(arm, evidence.probability_optimal(None), self._propensities(counts, more))

    def _propensities(self, counts: FloatArray, more: int) -> FloatArray:
        if counts.shape[0] != 2:
            return np.full(counts.shape[0], np.nan)
        (alpha, beta), (other_alpha, other_beta) = counts.tolist()
        first = finite_horizon.relaxed_share(alpha, beta, other_alpha, other_beta, more)
        return np.array([first, 1.0 - first])

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        found = rule_of().settings._replace(horizon=float(self.horizon))
        return Rule(kinds.SAMPLES, found)  # trials cannot limit shares that are not known
