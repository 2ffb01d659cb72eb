"""Problems and policies as the kernels take them: numbers and arrays, and the tables that spare simulations work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.given import check_policy
from doublesampling.policies import CompiledPolicy
from doublesampling.rules import tables
from doublesampling.rules.bundles import PolicySettings
from doublesampling.rules.choose import kinds

FloatArray = NDArray[np.float64]

OWN = -1
"""The kind of a policy of a user's own, which is played in plain Python."""

_LARGEST_TABLE = 1000  # samples: 8 MB, and the smallest p_FA, about 1e-218, is still a number


@dataclass(frozen=True, eq=False)
class PackedProblem:
    """A bandit and the belief that plays it, as the kernels take them."""

    family: str
    """The name of its family, a key of engine.families.FAMILIES."""
    law: int
    arms: int
    dimension: int
    world: Any
    prior: Any
    counts_wins: bool = False  # rewards are 0 and 1, and all of them are remembered alike
    samples_itself: bool = False  # p comes from the belief's own samples, never from the exact p
    belief: Any = None  # the belief itself, for realizations in plain Python
    compiled: bool = True  # whether bandit and belief are ours

    @property
    def one_count(self) -> bool:
        """Whether one count of the M samples says all: there are two arms, and p is exact before it is sampled."""
        return self.arms == 2 and not self.samples_itself


@dataclass(frozen=True, eq=False)
class PackedPolicy:
    """A policy as the rules take it: its kind, the form and the settings that it gives itself, and its tables.

    ``false_alarms`` holds p_FA by two counts of the M samples. ``two_arm_counts`` holds N by the count of the first of
    two arms, in one column. Both are empty where no problem needs them.
    """

    kind: int
    form: int
    settings: PolicySettings
    false_alarms: FloatArray
    two_arm_counts: FloatArray
    policy: Any = None
    """The policy itself, for realizations in plain Python."""

    @property
    def compiled(self) -> bool:
        """Whether there is a rule for it; else it is a user's own."""
        return self.kind != OWN

    def form_for(self, problem: PackedProblem) -> int:
        """Return the form that a problem is played with: the policy's own, or one that looks p_FA or N up."""
        if not _has_tables(self.form, self.settings):
            return self.form
        return kinds.TWO_ARM_TABLE if problem.one_count else kinds.TABLE

    def settings_for(self, problem: PackedProblem) -> PolicySettings:
        """Return the settings with the table that the form for a problem reads."""
        if self.kind == kinds.GITTINS:
            return self.settings._replace(table=self.policy.table(_pairs(problem.prior)))
        if not _has_tables(self.form, self.settings):
            return self.settings
        return self.settings._replace(table=self.two_arm_counts if problem.one_count else self.false_alarms)


def _pairs(prior: Any) -> FloatArray:
    """Return the two numbers per arm of Beta priors."""
    first, second = (prior.alpha, prior.beta) if hasattr(prior, "alpha") else (prior.first, prior.second)
    return np.column_stack([first, second])


def _has_tables(form: int, settings: PolicySettings) -> bool:
    """Whether N depends on the counts of few enough samples to be looked up."""
    return form == kinds.FALSE_ALARM and 0 < settings.samples <= _LARGEST_TABLE


def pack_policy(policy: object, problems: Sequence[PackedProblem]) -> PackedPolicy:
    """Return a policy as numbers, with the tables that its problems need."""
    false_alarms, two_arm_counts = np.empty((0, 0)), np.empty((0, 1))
    if not isinstance(policy, CompiledPolicy):
        unused = PolicySettings(0, 1, False, 0, 1.0, math.nan, 0.0, np.empty((0, 0)))
        return PackedPolicy(OWN, OWN, unused, false_alarms, two_arm_counts, check_policy(policy))
    form, settings = policy.rule()
    if _has_tables(form, settings):
        rule, samples = settings.false_alarm_rule, settings.samples
        if any(problem.one_count for problem in problems):
            two_arm_counts = tables.two_arm_counts(rule, samples, settings.rate, settings.cap)
        if not all(problem.one_count for problem in problems):
            false_alarms = tables.false_alarm_table(rule, samples)
    return PackedPolicy(policy.kind, form, settings, false_alarms, two_arm_counts, policy)
