"""Which policies the short forms of tests play on which bandit.

A policy is compiled for each family of beliefs, which takes a second or two, so the short forms agree on a few pairs of
both: every policy on two or three Bernoulli arms, and some policies on more arms and on every other family, each policy
on one of them at least.
The long forms, under the marker ``slow``, play all pairs.
"""

from typing import Any

import doublesampling as ds
from doublesampling.engine.plan import default_belief

_FEW: dict[str, tuple[str, ...]] = {
    "Beta, many arms": ("DoubleSampling", "DoubleSampling, exact", "ThompsonSampling", "InformationDirected",
                        "BayesUCB", "Greedy", "UCB1"),
    "Beta, changing": ("DoubleSampling", "InformationDirected", "UCB1", "KLUCB", "IMED", "Greedy",
                       "FiniteHorizonGittins", "InformationRelaxation", "EpsilonThompson"),
    "GammaPoisson": ("DoubleSampling", "DoubleSampling, horizon", "TopTwo", "BayesUCB"),
    "GammaExponential": ("DoubleSampling", "ThompsonSampling", "InformationDirected"),
    "linear": ("DoubleSampling", "ThompsonSampling", "BayesUCB", "Greedy", "LinUCB", "Oracle"),
    "linear, forgetting": ("DoubleSampling", "InformationDirected, sampled"),
    "Logistic": ("DoubleSampling", "ThompsonSampling", "EpsilonGreedy", "LinUCB"),
    "DirichletCategorical": ("DoubleSampling", "ThompsonSampling", "BayesUCB, sampled"),
}  # fmt: skip


def _rule_of(policy: Any) -> str:
    """Return what a policy is called above: the class, and what is compiled differently."""
    name = type(policy).__name__
    if isinstance(policy, ds.DoubleSampling):
        return name + (", horizon" if policy.horizon else "" if policy.samples else ", exact")
    return name + (", sampled" if getattr(policy, "samples", None) else "")


def _family_of(bandit: Any, belief: Any) -> str:
    """Return what a bandit and its belief are called above."""
    forgets = getattr(belief, "discount", 1.0) < 1.0
    if isinstance(belief, ds.Gaussian | ds.LinearGaussian):
        return "linear, forgetting" if forgets else "linear"
    if isinstance(belief, ds.BetaBernoulli):
        if forgets or isinstance(bandit, ds.ChangingBernoulliBandit):
            return "Beta, changing"
        return "Beta" if bandit.arms <= 3 else "Beta, many arms"
    return type(belief).__name__


def short(policies: list[Any], bandit: Any, belief: Any = None) -> list[Any]:
    """Return the policies that a short form plays; all on two or three Bernoulli arms, at least one elsewhere."""
    family = _family_of(bandit, default_belief(bandit) if belief is None else belief)
    found = [policy for policy in policies if family == "Beta" or _rule_of(policy) in _FEW[family]]
    assert found, f"no policy of {policies} is played on {family}"
    return found
