"""Top-two Thompson sampling."""

from dataclasses import field
from typing import ClassVar

import numpy as np

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.evidence import Evidence
from doublesampling.policies.common import Choice, CompiledPolicy, FloatArray, Rule, rule_of, without_candidates
from doublesampling.rules import entry_points
from doublesampling.rules.choose import baselines, kinds


@settings
class TopTwo(CompiledPolicy):
    """Top-two Thompson sampling: draw the best arm; with probability 1 - ``share`` play the best of the others instead.

    Made to find the best arm soon, rather than to earn on the way (Russo, 2016).

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.TopTwo(), belief, state, seed=1).propensities.round(3).tolist()
    [0.5, 0.5]
    """

    kind: ClassVar[int] = kinds.TOP_TWO

    share: float = field(default=0.5, kw_only=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", checks.within("share", self.share, 0.0, 1.0))

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm drawn from the exact probabilities, or the one drawn after it."""
        p = evidence.probability_optimal(None)
        first, _, _ = entry_points.choose_candidate(p, 1, True, evidence.words)
        arm = entry_points.second_of_two(first, self.share, p, evidence.words)
        return without_candidates(arm, p, self._propensities(p))

    def _propensities(self, p: FloatArray) -> FloatArray:
        """Each arm first, and each other one after it, but where nobody challenges."""
        propensities = np.zeros_like(p)
        for first, chance in enumerate(p):
            others = p.copy()
            others[first] = 0.0
            rest = others.sum()
            share = self.share if rest >= baselines.SURE else 1.0
            propensities[first] += chance * share
            if share < 1.0:
                propensities += chance * (1.0 - share) * others / rest
        return propensities

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(setting=self.share)
