"""Beliefs: what a reward teaches about its arm. Frozen settings, checked at birth; states never change in place."""

from typing import Any, Protocol

from numpy.typing import ArrayLike

from doublesampling.beliefs.bernoulli import BetaBernoulli
from doublesampling.beliefs.gaussian import Gaussian, LinearGaussian
from doublesampling.beliefs.marginals import Marginals
from doublesampling.beliefs.states import BetaState, NormalInverseGammaState, State

__all__ = [
    "Belief",
    "BetaBernoulli",
    "BetaState",
    "Gaussian",
    "LinearGaussian",
    "Marginals",
    "NormalInverseGammaState",
    "State",
]


class Belief(Protocol):
    """What a decision needs: a state, and from it the law of every arm's expected reward."""

    @property
    def arms(self) -> int:
        """How many arms there are."""

    def prior(self) -> Any:
        """The state before any observation."""

    def marginals(self, state: Any, context: ArrayLike | None = None) -> Marginals:
        """The law of each arm's expected reward."""
