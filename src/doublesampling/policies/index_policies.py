"""Policies that play the highest index of wins and losses: UCB1, KL-UCB and IMED."""

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
from doublesampling.rules import entry_points
from doublesampling.rules.choose import kinds


@settings
class _ByIndex(CompiledPolicy):
    """The arm of the highest index, from wins and losses; which index is the subclass's."""

    counts_wins: ClassVar[bool] = True
    ties: str = "random"

    def __post_init__(self) -> None:
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm with the highest index."""
        values = entry_points.indices(self.kind, evidence.wins_and_losses(), float(evidence.time))
        arm, propensities = play_largest(values, self.ties, evidence.words)
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(ties=self.ties)


@settings
class UCB1(_ByIndex):
    """Play the arm with the highest mean plus sqrt(2 log t / n); rewards of 0 and 1 (Auer et al., 2002).

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.UCB1(), belief, state).arm
    1
    """

    kind: ClassVar[int] = kinds.UCB1


@settings
class KLUCB(_ByIndex):
    """Play the arm whose mean could be the highest, by the Kullback-Leibler divergence (Garivier and Cappé, 2011).

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.KLUCB(), belief, state).arm
    1
    """

    kind: ClassVar[int] = kinds.KL_UCB


@settings
class IMED(_ByIndex):
    """Play the arm of the least n KL(mean, best mean) + log n: Indexed Minimum Empirical Divergence (Honda, 2015).

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.IMED(), belief, state).arm
    1
    """

    kind: ClassVar[int] = kinds.IMED
