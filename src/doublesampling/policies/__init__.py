"""Policies: how evidence becomes an arm. Settings are frozen and checked when a policy is made.

To add one, write a class with a rule (docs/how-to/add_a_policy.md) and import it here: ``simulate``, ``compare``,
stored experiments, the command line and the service take their list of policies from this module.
"""

from doublesampling.policies.bayes_ucb import BayesUCB
from doublesampling.policies.common import Answer, Choice, CompiledPolicy, Policy, Rule, is_ours
from doublesampling.policies.double_sampling import DoubleSampling
from doublesampling.policies.gittins import FiniteHorizonGittins
from doublesampling.policies.greedy import EpsilonGreedy, Greedy, Oracle
from doublesampling.policies.index_policies import IMED, KLUCB, UCB1
from doublesampling.policies.information_directed import InformationDirected
from doublesampling.policies.lin_ucb import LinUCB
from doublesampling.policies.relaxation import InformationRelaxation
from doublesampling.policies.thompson import EpsilonThompson, ThompsonSampling
from doublesampling.policies.top_two import TopTwo

__all__ = [
    "IMED",
    "KLUCB",
    "UCB1",
    "Answer",
    "BayesUCB",
    "Choice",
    "CompiledPolicy",
    "DoubleSampling",
    "EpsilonGreedy",
    "EpsilonThompson",
    "FiniteHorizonGittins",
    "Greedy",
    "InformationDirected",
    "InformationRelaxation",
    "LinUCB",
    "Oracle",
    "Policy",
    "Rule",
    "ThompsonSampling",
    "TopTwo",
    "is_ours",
]
