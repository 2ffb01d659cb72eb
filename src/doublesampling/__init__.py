"""Bayesian bandits that decide by sampling twice. docs/explanation/design.md follows one decision through it."""

from importlib import import_module
from typing import TYPE_CHECKING

from doublesampling import accessor as _accessor

if TYPE_CHECKING:
    from doublesampling.allocation import Allocation
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
        HybridLinearGaussian,
        LinearGaussian,
        Logistic,
        OwnBelief,
    )
    from doublesampling.client import connect, connect_async
    from doublesampling.decision import Decision, decide, decide_from_draws, probability_optimal
    from doublesampling.decisions import Decisions, decide_many
    from doublesampling.engine.simulate import simulate
    from doublesampling.errors import DoubleSamplingError
    from doublesampling.exact import BayesOptimal, bayes_optimal, exact_regret
    from doublesampling.features import Features
    from doublesampling.inference import Analysis, ConfidenceSequence, analyse, sequence
    from doublesampling.live import Experiment
    from doublesampling.policies import (
        IMED,
        KLUCB,
        UCB1,
        BayesUCB,
        DoubleSampling,
        EpsilonGreedy,
        EpsilonThompson,
        FiniteHorizonGittins,
        Greedy,
        InformationDirected,
        InformationRelaxation,
        LinUCB,
        Oracle,
        ThompsonSampling,
        TopTwo,
    )
    from doublesampling.reports import protocol, report
    from doublesampling.stopping import Stopping
    from doublesampling.trials.calibrate import calibrate
    from doublesampling.trials.compare import compare_designs
    from doublesampling.trials.trial import Trial

__version__ = "1.0.0"

_MODULES = {
    "Allocation": "allocation",
    "BayesOptimal": "exact",
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
    "EpsilonThompson": "policies",
    "ExponentialBandit": "bandits",
    "FiniteHorizonGittins": "policies",
    "GammaExponential": "beliefs",
    "GammaPoisson": "beliefs",
    "Experiment": "live",
    "Features": "features",
    "Gaussian": "beliefs",
    "GaussianBandit": "bandits",
    "Greedy": "policies",
    "HybridLinearGaussian": "beliefs",
    "IMED": "policies",
    "InformationDirected": "policies",
    "InformationRelaxation": "policies",
    "KLUCB": "policies",
    "LinUCB": "policies",
    "LinearGaussian": "beliefs",
    "LinearGaussianBandit": "bandits",
    "Logistic": "beliefs",
    "LogisticBandit": "bandits",
    "Oracle": "policies",
    "OwnBelief": "beliefs",
    "PoissonBandit": "bandits",
    "Stopping": "stopping",
    "ThompsonSampling": "policies",
    "TopTwo": "policies",
    "Trial": "trials.trial",
    "UCB1": "policies",
    "analyse": "inference",
    "bayes_optimal": "exact",
    "calibrate": "trials.calibrate",
    "compare_designs": "trials.compare",
    "connect": "client",
    "connect_async": "client",
    "decide": "decision",
    "decide_from_draws": "decision",
    "decide_many": "decisions",
    "exact_regret": "exact",
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
    "Allocation",
    "Analysis",
    "BayesOptimal",
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
    "EpsilonThompson",
    "Experiment",
    "ExponentialBandit",
    "Features",
    "FiniteHorizonGittins",
    "GammaExponential",
    "GammaPoisson",
    "Gaussian",
    "GaussianBandit",
    "Greedy",
    "HybridLinearGaussian",
    "InformationDirected",
    "InformationRelaxation",
    "LinUCB",
    "LinearGaussian",
    "LinearGaussianBandit",
    "Logistic",
    "LogisticBandit",
    "Oracle",
    "OwnBelief",
    "PoissonBandit",
    "Stopping",
    "ThompsonSampling",
    "TopTwo",
    "Trial",
    "__version__",
    "analyse",
    "bayes_optimal",
    "calibrate",
    "compare_designs",
    "connect",
    "connect_async",
    "decide",
    "decide_from_draws",
    "decide_many",
    "exact_regret",
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
