"""What all policies share: the interface, the answer, and helpers."""

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.evidence import Evidence
from doublesampling.rules import entry_points
from doublesampling.rules.bundles import PolicySettings
from doublesampling.rules.choose import kinds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]

TIES = ("random", "first")
_OURS: dict[type, bool] = {}  # by the class of a policy; every decision asks


class Choice(NamedTuple):
    """An arm, and how it came to be chosen."""

    arm: int
    probability_optimal: FloatArray
    candidates: int
    votes: IntArray
    propensities: FloatArray


Answer = Choice | int | Sequence[float] | FloatArray
"""What a policy may answer: a choice, an arm, or the probability with which to play each arm."""


class Policy(Protocol):
    """Anything that turns evidence into an arm."""

    def choose(self, evidence: Evidence) -> Answer:
        """Return the arm to play, or the probability with which to play each arm; ours return a Choice."""


def is_ours(policy: object) -> bool:
    """Tell whether a policy is one of this package, whose choices need no check."""
    kind = type(policy)
    found = _OURS.get(kind)
    if found is None:
        found = _OURS[kind] = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return found


class Rule(NamedTuple):
    """A policy as the compiled rules take it: its form (rules/choose/kinds.py) and its settings."""

    form: int
    settings: PolicySettings


class CompiledPolicy:
    """What a policy of this package says of itself, so that simulations can play its rule (rules/choose/choose.py)."""

    kind: ClassVar[int]
    """Its number among the rules, see rules/choose/kinds.py."""
    counts_wins: ClassVar[bool] = False
    """Whether it needs rewards of 0 and 1 that are all remembered alike."""
    linear_only: ClassVar[bool] = False
    """Whether it needs a Gaussian or linear belief."""

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        return rule_of()

    def table(self, prior: FloatArray) -> FloatArray | None:
        """Return the table that the rule needs for Beta priors, float array (arm, 2); None where it needs none."""
        return None


def rule_of(*, samples: int | None = None, ties: str = "random", setting: float = 0.0) -> Rule:
    """Return a rule with the settings that most policies have."""
    form = kinds.SAMPLES if samples else kinds.EXACT
    return Rule(form, PolicySettings(samples or 0, 1, ties == "first", 0, 1.0, math.nan, setting, np.empty((0, 0))))


def check_samples(samples: int | None, meaning_of_none: str, most: int) -> int | None:
    """Return a number of posterior samples, or None."""
    hint = f"The paper uses 1000; None is {meaning_of_none}."
    return None if samples is None else checks.integer("samples", samples, least=1, most=most, hint=hint)


def play_largest(values: FloatArray, ties: str, words: WordArray) -> tuple[int, FloatArray]:
    """Return the arm of the largest value, and the chance each arm had."""
    arm = entry_points.choose_largest(values, ties == "first", words)
    chance = np.zeros(values.size)
    if ties == "first":
        chance[arm] = 1.0
    else:
        chance[values == values[arm]] = 1.0
    return arm, chance / chance.sum()


def without_candidates(arm: int, p: FloatArray, propensities: FloatArray) -> Choice:
    """Return a choice made without candidates: the arm itself is the only one."""
    votes = np.zeros(p.size, dtype=np.int64)
    votes[arm] = 1
    return Choice(arm, p, 1, votes, propensities)
