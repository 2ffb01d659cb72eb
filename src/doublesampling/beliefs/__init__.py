"""Beliefs: what a reward teaches about its arm. Frozen settings, checked at birth; states never change in place."""

from typing import Any, Protocol

from numpy.typing import ArrayLike

from doublesampling.beliefs.bernoulli import BetaBernoulli
from doublesampling.beliefs.categorical import DirichletCategorical
from doublesampling.beliefs.gamma import GammaExponential, GammaPoisson
from doublesampling.beliefs.gaussian import Gaussian, LinearGaussian
from doublesampling.beliefs.logistic import Logistic
from doublesampling.beliefs.marginals import DirichletMeans, Marginals
from doublesampling.beliefs.states import (
    BetaState,
    DirichletState,
    GammaState,
    NormalInverseGammaState,
    NormalState,
    State,
)

__all__ = [
    "Belief",
    "BetaBernoulli",
    "BetaState",
    "DirichletCategorical",
    "DirichletMeans",
    "DirichletState",
    "GammaExponential",
    "GammaPoisson",
    "GammaState",
    "Gaussian",
    "LinearGaussian",
    "Logistic",
    "Marginals",
    "NormalInverseGammaState",
    "NormalState",
    "State",
]


class Belief(Protocol):
    """What a decision needs: a state, and from it the law of every arm's expected reward."""

    @property
    def arms(self) -> int:
        """How many arms there are."""

    def prior(self) -> Any:
        """The state before any observation."""

    def marginals(self, state: Any, context: ArrayLike | None = None) -> Marginals | DirichletMeans:
        """The law of each arm's expected reward."""
