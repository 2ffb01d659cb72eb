"""Beliefs: what a reward teaches about its arm. Frozen settings, checked at birth; states never change in place."""

from doublesampling.beliefs.bernoulli import BetaBernoulli
from doublesampling.beliefs.categorical import DirichletCategorical
from doublesampling.beliefs.gamma import GammaExponential, GammaPoisson
from doublesampling.beliefs.gaussian import Gaussian, LinearGaussian
from doublesampling.beliefs.hybrid import HybridLinearGaussian
from doublesampling.beliefs.joint import JointStudent
from doublesampling.beliefs.logistic import Logistic
from doublesampling.beliefs.marginals import DirichletMeans, DrawnLaws, Marginals
from doublesampling.beliefs.own import OwnBelief, OwnState
from doublesampling.beliefs.protocol import AnyBelief, Belief
from doublesampling.beliefs.states import (
    BetaState,
    DirichletState,
    GammaState,
    JointState,
    NormalInverseGammaState,
    NormalState,
    State,
)

__all__ = [
    "AnyBelief",
    "Belief",
    "BetaBernoulli",
    "BetaState",
    "DirichletCategorical",
    "DirichletMeans",
    "DirichletState",
    "DrawnLaws",
    "GammaExponential",
    "GammaPoisson",
    "GammaState",
    "Gaussian",
    "HybridLinearGaussian",
    "JointState",
    "JointStudent",
    "LinearGaussian",
    "Logistic",
    "Marginals",
    "NormalInverseGammaState",
    "NormalState",
    "OwnBelief",
    "OwnState",
    "State",
]
