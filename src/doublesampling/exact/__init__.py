"""Exact computations for two Bernoulli arms: the Bayes optimum, regrets of policies, and the laws of trials."""

from doublesampling.exact.optimal import BayesOptimal, bayes_optimal
from doublesampling.exact.regret import exact_regret

__all__ = ["BayesOptimal", "bayes_optimal", "exact_regret"]
