"""Bayes-UCB."""

import math
from typing import ClassVar

import numpy as np

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.evidence import Evidence
from doublesampling.policies.common import (
    TIES,
    Choice,
    CompiledPolicy,
    Rule,
    check_samples,
    play_largest,
    rule_of,
    without_candidates,
)
from doublesampling.rules.choose import kinds


@settings
class BayesUCB(CompiledPolicy):
    """Play the arm with the highest quantile of level 1 - 1/t; with ``samples``, of that many posterior samples.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.BayesUCB(), belief, state).arm
    1
    """

    kind: ClassVar[int] = kinds.BAYES_UCB

    samples: int | None = None
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", check_samples(self.samples, "the exact quantile", 10**6))
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm with the highest quantile. Propensities are nan, not known, where our own samples decide."""
        values = evidence.upper_quantiles(-math.log(evidence.time), self.samples)
        arm, propensities = play_largest(values, self.ties, evidence.words)
        if self.samples is not None and not evidence.given_draws:
            propensities = np.full(values.size, np.nan)
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(samples=self.samples, ties=self.ties)
