"""Information-directed sampling."""

from typing import ClassVar

import numpy as np

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.evidence import Evidence
from doublesampling.policies.common import Choice, CompiledPolicy, Rule, rule_of, without_candidates
from doublesampling.rules import tallies
from doublesampling.rules.choose import kinds


@settings
class InformationDirected(CompiledPolicy):
    """Information-directed sampling: the least squared regret per information about which arm is the best.

    Russo and Van Roy (2014), with the variance form of the information: a mixture of two arms at most. With
    ``samples``, regret and information come from that many posterior samples; None takes them exactly.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.InformationDirected(), belief, state, seed=1).arm
    1
    """

    kind: ClassVar[int] = kinds.INFORMATION_DIRECTED

    samples: int | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            object.__setattr__(self, "samples", checks.integer("samples", self.samples, least=2, most=10**6))

    def choose(self, evidence: Evidence) -> Choice:
        """Return one arm of the mixture. Propensities are nan where our own samples decide: they are not known."""
        arm, propensities = tallies.directed_choice(evidence.regret_and_information(self.samples), evidence.words)
        if self.samples is not None and not evidence.given_draws:
            propensities = np.full(propensities.size, np.nan)
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(samples=self.samples)
