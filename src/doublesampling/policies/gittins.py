"""The finite-horizon Gittins index policy."""

from typing import ClassVar

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.errors import SettingError
from doublesampling.evidence import Evidence
from doublesampling.policies.common import (
    TIES,
    Choice,
    CompiledPolicy,
    FloatArray,
    Rule,
    play_largest,
    rule_of,
    without_candidates,
)
from doublesampling.rules import entry_points, finite_horizon
from doublesampling.rules.choose import kinds

MOST_SIMULATED = 500
"""The longest horizon of a table: 168 MB per prior."""
_MOST_LEFT = 20_000  # decisions: a second per index


@settings
class FiniteHorizonGittins(CompiledPolicy):
    """Play the arm with the highest finite-horizon Gittins index; rewards of 0 and 1.

    The index of an arm is the known reward per play that is worth as much as the arm itself when ``horizon`` ends all
    decisions: an arm that is little known has a higher one than its mean says, the more so the more decisions are left.
    With two arms it loses less than half a per cent more than the Bayes-optimal policy (docs/explanation/exact.md).
    With ``epsilon`` a share of the decisions is drawn uniformly, so that every arm has a propensity above zero.

    Simulations take indices from a table for horizons up to 500; decisions compute them.

    >>> FiniteHorizonGittins(horizon=100)
    FiniteHorizonGittins(horizon=100)
    """

    kind: ClassVar[int] = kinds.GITTINS
    counts_wins: ClassVar[bool] = True

    horizon: int
    epsilon: float = 0.0
    ties: str = "random"

    def __post_init__(self) -> None:
        hint = "An index looks at every state that an arm can reach until then."
        horizon = checks.integer("horizon", self.horizon, least=1, most=_MOST_LEFT, hint=hint)
        object.__setattr__(self, "horizon", horizon)
        object.__setattr__(self, "epsilon", checks.within("epsilon", self.epsilon, 0.0, 1.0))
        checks.one_of("ties", self.ties, TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest index, or with probability epsilon any arm."""
        counts, left = evidence.beta_counts(), max(self.horizon - evidence.time + 1, 1)
        arm, propensities = play_largest(finite_horizon.gittins_indices(counts, left), self.ties, evidence.words)
        if self.epsilon > 0.0:
            arm = entry_points.explore(arm, propensities.size, self.epsilon, evidence.words)
            propensities = self.epsilon / propensities.size + (1.0 - self.epsilon) * propensities
        return without_candidates(arm, evidence.probability_optimal(None), propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        form, found = rule_of(ties=self.ties, setting=self.epsilon)
        return Rule(form, found._replace(horizon=float(self.horizon)))

    def table(self, prior: FloatArray) -> FloatArray:
        """Return the indices of every state of the arms, for their priors."""
        if self.horizon > MOST_SIMULATED:
            raise SettingError(
                f"Simulations of {self!r} need a table of indices, which is kept up to horizon {MOST_SIMULATED}. "
                "Use a shorter horizon, or DoubleSampling(horizon=...)."
            )
        return finite_horizon.gittins_table(tuple((float(a), float(b)) for a, b in prior), self.horizon)
