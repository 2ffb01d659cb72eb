"""Greedy policies, and the oracle that knows the truth."""

from dataclasses import field
from typing import ClassVar

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.errors import SettingError
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
from doublesampling.rules import entry_points
from doublesampling.rules.choose import kinds


@settings
class Greedy(CompiledPolicy):
    """Play the arm with the highest posterior mean, and never look back.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.Greedy(), belief, state).arm
    1
    """

    kind: ClassVar[int] = kinds.GREEDY

    ties: str = "random"

    def __post_init__(self) -> None:
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm with the highest posterior mean."""
        arm, propensities = play_largest(evidence.expected_rewards(), self.ties, evidence.words)
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(ties=self.ties)


@settings
class EpsilonGreedy(CompiledPolicy):
    """Play any arm with probability epsilon, else the one with the highest posterior mean.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.EpsilonGreedy(0.1), belief, state).propensities.round(3).tolist()
    [0.05, 0.95]
    """

    kind: ClassVar[int] = kinds.EPSILON_GREEDY

    epsilon: float = field(default=0.1, kw_only=False)
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.within("epsilon", self.epsilon, 0.0, 1.0))
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """Return a uniform draw over the arms, or the arm with the highest posterior mean."""
        arm, propensities = play_largest(evidence.expected_rewards(), self.ties, evidence.words)
        arms = propensities.size
        arm = entry_points.explore(arm, arms, self.epsilon, evidence.words)
        propensities = self.epsilon / arms + (1.0 - self.epsilon) * propensities
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(ties=self.ties, setting=self.epsilon)


@settings
class Oracle(CompiledPolicy):
    """Play the arm that is truly the best: the floor that simulations are measured against.

    >>> import doublesampling as ds
    >>> result = ds.simulate(ds.BernoulliBandit([0.4, 0.8]), ds.Oracle(), horizon=10, realizations=2, seed=1)
    >>> float(result.final_regret.max())
    0.0
    """

    kind: ClassVar[int] = kinds.ORACLE

    def choose(self, evidence: Evidence) -> Choice:
        """Raise SettingError: outside a simulation nobody knows the truth."""
        raise SettingError("Oracle plays the truly best arm, which only simulate knows. Decide with another policy.")
