"""LinUCB."""

from dataclasses import field
from typing import ClassVar

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.evidence import Evidence
from doublesampling.policies.common import (
    TIES,
    Choice,
    CompiledPolicy,
    Rule,
    play_largest,
    rule_of,
    without_candidates,
)
from doublesampling.rules.choose import kinds


@settings
class LinUCB(CompiledPolicy):
    """Play the arm with the highest expected reward plus ``width`` posterior scales; Gaussian and linear beliefs.

    >>> import doublesampling as ds
    >>> belief = ds.LinearGaussian(arms=2, dimension=2)
    >>> state = belief.update(belief.prior(), arm=0, reward=2.0, context=[1.0, 0.0])
    >>> ds.decide(ds.LinUCB(width=1.0), belief, state, context=[1.0, 0.0]).arm
    1
    """

    kind: ClassVar[int] = kinds.LIN_UCB
    linear_only: ClassVar[bool] = True

    width: float = field(default=1.0, kw_only=False)
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", checks.within("width", self.width, 0.0, 1e6))
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm with the highest bound."""
        location, scale = evidence.location_and_scale().T
        arm, propensities = play_largest(location + self.width * scale, self.ties, evidence.words)
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(ties=self.ties, setting=self.width)
