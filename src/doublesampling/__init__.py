"""Bayesian bandits that decide by sampling twice. docs/design.md follows one decision through these files."""

from importlib import import_module
from typing import TYPE_CHECKING

from doublesampling import accessor as _accessor

if TYPE_CHECKING:
    from doublesampling.bandits import (
        BernoulliBandit,
        CategoricalBandit,
        ChangingBernoulliBandit,
        ExponentialBandit,
        GaussianBandit,
        LinearGaussianBandit,
        LogisticBandit,
        PoissonBandit,
    )
    from doublesampling.beliefs import (
        BetaBernoulli,
        DirichletCategorical,
        GammaExponential,
        GammaPoisson,
        Gaussian,
        LinearGaussian,
        Logistic,
        OwnBelief,
    )
    from doublesampling.decision import Decision, decide, decide_from_draws, probability_optimal
    from doublesampling.decisions import Decisions, decide_many
    from doublesampling.engine.simulate import simulate
    from doublesampling.errors import DoubleSamplingError
    from doublesampling.inference import Analysis, ConfidenceSequence, analyse, sequence
    from doublesampling.live import Experiment
    from doublesampling.policies import (
        IMED,
        KLUCB,
        UCB1,
        BayesUCB,
        DoubleSampling,
        EpsilonGreedy,
        Greedy,
        InformationDirected,
        LinUCB,
        Oracle,
        ThompsonSampling,
        TopTwo,
    )
    from doublesampling.reports import protocol, report

__version__ = "0.1.0"

_MODULES = {
    "Analysis": "inference",
    "BayesUCB": "policies",
    "BernoulliBandit": "bandits",
    "BetaBernoulli": "beliefs",
    "CategoricalBandit": "bandits",
    "ChangingBernoulliBandit": "bandits",
    "ConfidenceSequence": "inference",
    "Decision": "decision",
    "Decisions": "decisions",
    "DirichletCategorical": "beliefs",
    "DoubleSampling": "policies",
    "DoubleSamplingError": "errors",
    "EpsilonGreedy": "policies",
    "ExponentialBandit": "bandits",
    "GammaExponential": "beliefs",
    "GammaPoisson": "beliefs",
    "Experiment": "live",
    "Gaussian": "beliefs",
    "GaussianBandit": "bandits",
    "Greedy": "policies",
    "IMED": "policies",
    "InformationDirected": "policies",
    "KLUCB": "policies",
    "LinUCB": "policies",
    "LinearGaussian": "beliefs",
    "LinearGaussianBandit": "bandits",
    "Logistic": "beliefs",
    "LogisticBandit": "bandits",
    "Oracle": "policies",
    "OwnBelief": "beliefs",
    "PoissonBandit": "bandits",
    "ThompsonSampling": "policies",
    "TopTwo": "policies",
    "UCB1": "policies",
    "analyse": "inference",
    "decide": "decision",
    "decide_from_draws": "decision",
    "decide_many": "decisions",
    "probability_optimal": "decision",
    "protocol": "reports",
    "report": "reports",
    "sequence": "inference",
    "simulate": "engine.simulate",
}

__all__ = [
    "IMED",
    "KLUCB",
    "UCB1",
    "Analysis",
    "BayesUCB",
    "BernoulliBandit",
    "BetaBernoulli",
    "CategoricalBandit",
    "ChangingBernoulliBandit",
    "ConfidenceSequence",
    "Decision",
    "Decisions",
    "DirichletCategorical",
    "DoubleSampling",
    "DoubleSamplingError",
    "EpsilonGreedy",
    "Experiment",
    "ExponentialBandit",
    "GammaExponential",
    "GammaPoisson",
    "Gaussian",
    "GaussianBandit",
    "Greedy",
    "InformationDirected",
    "LinUCB",
    "LinearGaussian",
    "LinearGaussianBandit",
    "Logistic",
    "LogisticBandit",
    "Oracle",
    "OwnBelief",
    "PoissonBandit",
    "ThompsonSampling",
    "TopTwo",
    "__version__",
    "analyse",
    "decide",
    "decide_from_draws",
    "decide_many",
    "probability_optimal",
    "protocol",
    "report",
    "sequence",
    "simulate",
]


_accessor.register()


def __getattr__(name: str) -> object:
    """Import a module when one of its names is first used: ``import doublesampling`` alone imports nothing heavy."""
    if name not in _MODULES:
        raise AttributeError(f"module 'doublesampling' has no attribute {name!r}")
    found = getattr(import_module(f"doublesampling.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
