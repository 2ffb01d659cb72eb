"""Thompson sampling, and its mixture with greedy decisions."""

from dataclasses import field
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
    play_largest,
    rule_of,
    without_candidates,
)
from doublesampling.rules import entry_points
from doublesampling.rules.choose import kinds
from doublesampling.rules.draws import EXPLORATION


@settings
class ThompsonSampling(CompiledPolicy):
    """Play each arm with the probability that it is the best: double sampling with one candidate."""

    kind: ClassVar[int] = kinds.THOMPSON

    def choose(self, evidence: Evidence) -> Choice:
        """One candidate drawn from the exact probabilities."""
        p = evidence.probability_optimal(None)
        arm, votes, propensities = entry_points.choose_candidate(p, 1, False, evidence.words)
        return Choice(arm, p, 1, votes, propensities)


@settings
class EpsilonThompson(CompiledPolicy):
    """Play greedily with probability 1 - epsilon, else as Thompson sampling would (Jin, Yang, Xiao, Xu, 2023)."""

    kind: ClassVar[int] = kinds.EPSILON_THOMPSON

    epsilon: float = field(default=0.5, kw_only=False)
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.within("epsilon", self.epsilon, 0.0, 1.0))
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest posterior mean, or with probability epsilon one drawn from the probabilities."""
        p = evidence.probability_optimal(None)
        arm, greedy = play_largest(evidence.expected_rewards(), self.ties, evidence.words)
        drawn, _, thompson = entry_points.choose_candidate(p, 1, self.ties == "first", evidence.words)
        if entry_points.uniform_at(evidence.words, EXPLORATION, np.uint64(0)) < self.epsilon:
            arm = drawn
        return without_candidates(arm, p, self.epsilon * thompson + (1.0 - self.epsilon) * greedy)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of(ties=self.ties, setting=self.epsilon)
