"""Policies: how evidence becomes an arm. Frozen settings, checked at birth; each policy is one method."""

import math
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.errors import SettingError
from doublesampling.evidence import Evidence
from doublesampling.rules import entry_points
from doublesampling.rules.bundles import Policy as RulePolicy
from doublesampling.rules.choose import baselines, candidates, kinds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]

_FALSE_ALARMS = {
    ("truncated-gaussian", "log"): candidates.TRUNCATED_GAUSSIAN,
    ("truncated-gaussian", "double"): candidates.TRUNCATED_GAUSSIAN_IN_DOUBLE,
    ("markov", "log"): candidates.MARKOV,
    ("chebyshev", "log"): candidates.CHEBYSHEV,
}
_TIES = ("random", "first")


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
    return type(policy).__module__.partition(".")[0] == __name__.partition(".")[0]


def _check_samples(samples: int | None, meaning_of_none: str, most: int) -> int | None:
    hint = f"The paper uses 1000; None is {meaning_of_none}."
    return None if samples is None else checks.integer("samples", samples, least=1, most=most, hint=hint)


def _largest(values: FloatArray, ties: str, words: WordArray) -> tuple[int, FloatArray]:
    """The arm of the largest value, and the chance each arm had."""
    arm = entry_points.choose_largest(values, ties == "first", words)
    chance = np.zeros(values.size)
    if ties == "first":
        chance[arm] = 1.0
    else:
        chance[values == values[arm]] = 1.0
    return arm, chance / chance.sum()


def _alone(arm: int, p: FloatArray, propensities: FloatArray) -> Choice:
    """A choice made without candidates: the arm itself is the only one."""
    votes = np.zeros(p.size, dtype=np.int64)
    votes[arm] = 1
    return Choice(arm, p, 1, votes, propensities)


@settings
class DoubleSampling:
    """Sample the posterior for how surely each arm is best, then play the mode of as many candidates as that is sure.

    ``samples`` is M; None takes the exact probabilities. ``max_candidates`` caps N = scale * log(1 / p_FA) to the base
    ``log_base``. ``false_alarm`` is how p_FA is found: "truncated-gaussian" (the paper), "markov" or "chebyshev" (the
    authors ran those two with ``log_base=math.e``). ``ties`` of the mode: "random", or to the "first" arm.
    ``arithmetic="double"`` rounds p_FA as the authors' code did. With a ``horizon`` another rule takes the place of
    N = scale * log(1 / p_FA): it weighs the doubt against the decisions that are left (docs/method.md).

    >>> DoubleSampling(samples=100).samples
    100
    """

    samples: int | None = 1000
    max_candidates: int = 1000
    ties: str = "random"
    false_alarm: str = "truncated-gaussian"
    horizon: int | None = None
    log_base: float = 10.0
    scale: float = 1.0
    arithmetic: str = "log"

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "samples", _check_samples(self.samples, "exact", 10**12))
        hint = "The paper uses 1000; 1 is Thompson sampling."
        fix(
            self,
            "max_candidates",
            checks.integer("max_candidates", self.max_candidates, least=1, most=10**4, hint=hint),
        )
        checks.one_of("ties", self.ties, _TIES)
        checks.one_of("false_alarm", self.false_alarm, ("truncated-gaussian", "markov", "chebyshev"))
        checks.one_of("arithmetic", self.arithmetic, ("log", "double"))
        if (self.false_alarm, self.arithmetic) not in _FALSE_ALARMS:
            raise SettingError("arithmetic='double' is how the authors rounded the truncated Gaussian only.")
        if self.horizon is not None:
            fix(self, "horizon", checks.integer("horizon", self.horizon, least=1, most=10**15))
        fixed = {"false_alarm": "truncated-gaussian", "log_base": 10.0, "scale": 1.0, "arithmetic": "log"}
        if self.horizon is not None and any(getattr(self, name) != usual for name, usual in fixed.items()):
            raise SettingError(f"With a horizon, {', '.join(fixed)} do not enter N. Leave them at their defaults.")
        fix(self, "log_base", checks.within("log_base", self.log_base, 1.0 + 1e-6, 1e100, hint="The paper uses 10."))
        fix(self, "scale", checks.within("scale", self.scale, 1e-6, 1e6, hint="The paper uses 1."))

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """The authors' numerics and ties, for the figures: p_FA in double precision, ties to the first arm."""
        return cls(**({"ties": "first", "arithmetic": "double"} | changes))

    @property
    def rate(self) -> float:
        """Candidates per unit of ln(1 / p_FA)."""
        return self.scale / math.log(self.log_base)

    @property
    def false_alarm_kind(self) -> int:
        """How the rules call the way p_FA is found."""
        return _FALSE_ALARMS[self.false_alarm, self.arithmetic]

    def number_of_candidates(self, p: FloatArray, time: int | None = None) -> int:
        """N, the number of candidates to draw from Cat(p), float array (arm)."""
        remaining = math.nan
        if self.horizon is not None:
            if time is None:
                raise SettingError("A horizon needs the time. Pass time=, the number of this decision counted from 1.")
            remaining = float(max(self.horizon - time, 1))  # a horizon that has passed keeps asking for one more
        kind = self.false_alarm_kind
        return entry_points.count_candidates(p, kind, self.rate, self.max_candidates, remaining)

    def choose(self, evidence: Evidence) -> Choice:
        """The mode of N candidates drawn from the estimated probabilities."""
        form, settings, settled = self._rule
        if self.horizon is not None and evidence.time < 1:  # asks for the time, an error where it is not known
            raise SettingError("time is counted from 1.")
        if evidence.samples_itself:
            p, settings = evidence.probability_optimal(self.samples), settled
        else:
            p = evidence.probability_optimal(None)
        arm, number, p, votes, propensities = entry_points.sample_twice(form, settings, p, evidence.words)
        return Choice(arm, p, number, votes, propensities)

    @cached_property
    def _rule(self) -> tuple[int, FloatArray, FloatArray]:
        """The form of the rule, and its settings with and without samples of its own."""
        form = kinds.FALSE_ALARM if self.horizon is None else kinds.UNTIL_HORIZON
        horizon = math.nan if self.horizon is None else float(self.horizon)
        packed = RulePolicy(
            self.samples or 0, self.max_candidates, self.ties == "first", self.false_alarm_kind, self.rate, horizon,
            0.0, np.empty((0, 0)),
        )  # fmt: skip
        return form, entry_points.settings_array(packed), entry_points.settings_array(packed._replace(samples=0))


@settings
class ThompsonSampling:
    """Play each arm with the probability that it is the best: double sampling with one candidate."""

    def choose(self, evidence: Evidence) -> Choice:
        """One candidate drawn from the exact probabilities."""
        p = evidence.probability_optimal(None)
        arm, votes, propensities = entry_points.choose_candidate(p, 1, False, evidence.words)
        return Choice(arm, p, 1, votes, propensities)


@settings
class BayesUCB:
    """Play the arm with the highest quantile of level 1 - 1/t; with ``samples``, of that many posterior samples."""

    samples: int | None = None
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", _check_samples(self.samples, "the exact quantile", 10**6))
        checks.one_of("ties", self.ties, _TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest quantile. Propensities are nan where our own samples decide: they are not known."""
        values = evidence.upper_quantiles(-math.log(evidence.time), self.samples)
        arm, propensities = _largest(values, self.ties, evidence.words)
        if self.samples is not None and not evidence.given_draws:
            propensities = np.full(values.size, np.nan)
        return _alone(arm, evidence.probability_optimal(None), propensities)


@settings
class Greedy:
    """Play the arm with the highest posterior mean, and never look back."""

    ties: str = "random"

    def __post_init__(self) -> None:
        checks.one_of("ties", self.ties, _TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest posterior mean."""
        arm, propensities = _largest(evidence.expected_rewards(), self.ties, evidence.words)
        return _alone(arm, evidence.probability_optimal(None), propensities)


@settings
class EpsilonGreedy:
    """Play any arm with probability epsilon, else the one with the highest posterior mean."""

    epsilon: float = field(default=0.1, kw_only=False)
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.within("epsilon", self.epsilon, 0.0, 1.0))
        checks.one_of("ties", self.ties, _TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """A uniform draw over the arms, or the arm with the highest posterior mean."""
        arm, propensities = _largest(evidence.expected_rewards(), self.ties, evidence.words)
        arms = propensities.size
        arm = entry_points.explore(arm, arms, self.epsilon, evidence.words)
        propensities = self.epsilon / arms + (1.0 - self.epsilon) * propensities
        return _alone(arm, evidence.probability_optimal(None), propensities)


@settings
class TopTwo:
    """Top-two Thompson sampling: draw the best arm; with probability 1 - ``share`` play the best of the others instead.

    Made to find the best arm soon, rather than to earn on the way (Russo, 2016).
    """

    share: float = field(default=0.5, kw_only=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", checks.within("share", self.share, 0.0, 1.0))

    def choose(self, evidence: Evidence) -> Choice:
        """The arm drawn from the exact probabilities, or the one drawn after it."""
        p = evidence.probability_optimal(None)
        first, _, _ = entry_points.choose_candidate(p, 1, True, evidence.words)
        arm = entry_points.second_of_two(first, self.share, p, evidence.words)
        return _alone(arm, p, self._propensities(p))

    def _propensities(self, p: FloatArray) -> FloatArray:
        """Each arm first, and each other one after it, but where nobody challenges."""
        propensities = np.zeros_like(p)
        for first, chance in enumerate(p):
            others = p.copy()
            others[first] = 0.0
            rest = others.sum()
            share = self.share if rest >= baselines.SURE else 1.0
            propensities[first] += chance * share
            if share < 1.0:
                propensities += chance * (1.0 - share) * others / rest
        return propensities


@settings
class _ByIndex:
    """The arm of the highest index, from wins and losses; which index is the subclass's."""

    kind: ClassVar[int]
    ties: str = "random"

    def __post_init__(self) -> None:
        checks.one_of("ties", self.ties, _TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest index."""
        values = entry_points.indices(self.kind, evidence.wins_and_losses(), float(evidence.time))
        arm, propensities = _largest(values, self.ties, evidence.words)
        return _alone(arm, evidence.probability_optimal(None), propensities)


@settings
class UCB1(_ByIndex):
    """Play the arm with the highest mean plus sqrt(2 log t / n); rewards of 0 and 1 (Auer et al., 2002)."""

    kind: ClassVar[int] = kinds.UCB1


@settings
class KLUCB(_ByIndex):
    """Play the arm whose mean could be the highest, by the Kullback-Leibler divergence (Garivier and Cappé, 2011)."""

    kind: ClassVar[int] = kinds.KL_UCB


@settings
class IMED(_ByIndex):
    """Play the arm of the least n KL(mean, best mean) + log n: Indexed Minimum Empirical Divergence (Honda, 2015)."""

    kind: ClassVar[int] = kinds.IMED


@settings
class LinUCB:
    """Play the arm with the highest expected reward plus ``width`` posterior scales; Gaussian and linear beliefs."""

    width: float = field(default=1.0, kw_only=False)
    ties: str = "random"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", checks.within("width", self.width, 0.0, 1e6))
        checks.one_of("ties", self.ties, _TIES)

    def choose(self, evidence: Evidence) -> Choice:
        """The arm with the highest bound."""
        location, scale = evidence.location_and_scale().T
        arm, propensities = _largest(location + self.width * scale, self.ties, evidence.words)
        return _alone(arm, evidence.probability_optimal(None), propensities)


@settings
class InformationDirected:
    """Information-directed sampling: the least squared regret per information about which arm is the best.

    Russo and Van Roy (2014), with the variance form of the information: a mixture of two arms at most. With
    ``samples``, regret and information come from that many posterior samples; None takes them exactly.
    """

    samples: int | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            object.__setattr__(self, "samples", checks.integer("samples", self.samples, least=2, most=10**6))

    def choose(self, evidence: Evidence) -> Choice:
        """One arm of the mixture. Propensities are nan where our own samples decide: they are not known."""
        arm, propensities = entry_points.directed_choice(evidence.regret_and_information(self.samples), evidence.words)
        if self.samples is not None and not evidence.given_draws:
            propensities = np.full(propensities.size, np.nan)
        return _alone(arm, evidence.probability_optimal(None), propensities)


@settings
class Oracle:
    """Play the arm that is truly the best: the floor that simulations are measured against."""

    def choose(self, evidence: Evidence) -> Choice:
        """Refused: outside a simulation nobody knows the truth."""
        raise SettingError("Oracle plays the truly best arm, which only simulate knows. Decide with another policy.")
