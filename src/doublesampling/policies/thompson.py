"""Thompson sampling."""

from typing import ClassVar

from doublesampling.checks import settings
from doublesampling.evidence import Evidence
from doublesampling.policies.common import Choice, CompiledPolicy
from doublesampling.rules import entry_points
from doublesampling.rules.choose import kinds


@settings
class ThompsonSampling(CompiledPolicy):
    """Play each arm with the probability that it is the best: double sampling with one candidate.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 1, 1, 1])
    >>> ds.decide(ds.ThompsonSampling(), belief, state, seed=1).propensities.round(3).tolist()
    [0.2, 0.8]
    """

    kind: ClassVar[int] = kinds.THOMPSON

    def choose(self, evidence: Evidence) -> Choice:
        """Return one candidate drawn from the exact probabilities."""
        p = evidence.probability_optimal(None)
        arm, votes, propensities = entry_points.choose_candidate(p, 1, False, evidence.words)
        return Choice(arm, p, 1, votes, propensities)
