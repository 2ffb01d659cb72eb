"""Double sampling: the paper's policy."""

import math
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from doublesampling import checks
from doublesampling.checks import settings
from doublesampling.errors import SettingError
from doublesampling.evidence import Evidence
from doublesampling.policies.common import TIES, Choice, CompiledPolicy, FloatArray, Rule, check_samples
from doublesampling.rules.bundles import PolicySettings
from doublesampling.rules.choose import candidates, kinds
from doublesampling.rules.sample_twice import count_candidates, sample_twice, settings_array

_FALSE_ALARMS = {
    ("truncated-gaussian", "log"): candidates.TRUNCATED_GAUSSIAN,
    ("truncated-gaussian", "double"): candidates.TRUNCATED_GAUSSIAN_IN_DOUBLE,
    ("markov", "log"): candidates.MARKOV,
    ("chebyshev", "log"): candidates.CHEBYSHEV,
}

_FORMS = {
    "false-alarm": kinds.FALSE_ALARM,
    "challenger": kinds.CHALLENGER,
    "doubt": kinds.DOUBT,
    "anytime": kinds.ANYTIME,
}


@settings
class DoubleSampling(CompiledPolicy):
    """Sample the posterior for how surely each arm is best, then play the mode of as many candidates as that is sure.

    The counts of the M posterior samples that favour each arm are drawn at once, from Multinomial(M, p), p exact.

    ``samples`` is M; None takes the exact probabilities. ``max_candidates`` caps N = scale * log(1 / p_FA) to the base
    ``log_base``. ``false_alarm`` is how p_FA is found: "truncated-gaussian" (the paper), "markov" or "chebyshev" (the
    authors ran those two with ``log_base=math.e``). ``ties`` of the mode: "random", or to the "first" arm.
    ``arithmetic="double"`` rounds p_FA as the authors' code did.

    Two better counts than the paper's weigh what exploring is worth: with a ``horizon``, the number of decisions that
    will be made in all, and without one ``DoubleSampling.anytime()``. Both ask whether a challenger is known worse than
    the leader (docs/explanation/horizon.md), and look at the exact probabilities where they are known. ``count`` names
    the rule: "false-alarm" (the paper), "challenger" (with a horizon), "anytime", or "doubt" (with a horizon; the rule
    of releases before 1.0, which stored experiments may have). None takes "challenger" where there is a horizon, else
    "false-alarm".

    >>> DoubleSampling(samples=100).samples
    100
    """

    kind: ClassVar[int] = kinds.DOUBLE_SAMPLING

    samples: int | None = 1000
    max_candidates: int = 1000
    ties: str = "random"
    false_alarm: str = "truncated-gaussian"
    horizon: int | None = None
    count: str | None = None
    log_base: float = 10.0
    scale: float = 1.0
    arithmetic: str = "log"

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "samples", check_samples(self.samples, "exact", 10**12))
        hint = "The paper uses 1000; 1 is Thompson sampling."
        fix(
            self,
            "max_candidates",
            checks.integer("max_candidates", self.max_candidates, least=1, most=10**4, hint=hint),
        )
        checks.one_of("ties", self.ties, TIES)
        checks.one_of("false_alarm", self.false_alarm, ("truncated-gaussian", "markov", "chebyshev"))
        checks.one_of("arithmetic", self.arithmetic, ("log", "double"))
        if (self.false_alarm, self.arithmetic) not in _FALSE_ALARMS:
            raise SettingError("arithmetic='double' is how the authors rounded the truncated Gaussian only.")
        if self.horizon is not None:
            fix(self, "horizon", checks.integer("horizon", self.horizon, least=1, most=10**15))
        self._check_count()
        fix(self, "log_base", checks.within("log_base", self.log_base, 1.0 + 1e-6, 1e100, hint="The paper uses 10."))
        fix(self, "scale", checks.within("scale", self.scale, 1e-6, 1e6, hint="The paper uses 1."))

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """Return the policy as the authors ran it: p_FA in double precision, ties to the first arm."""
        return cls(**({"ties": "first", "arithmetic": "double"} | changes))

    @classmethod
    def anytime(cls, **changes: Any) -> Self:
        """Return the policy for an experiment whose length is not known: its count weighs the time that has passed.

        >>> DoubleSampling.anytime().count
        'anytime'
        """
        return cls(**({"count": "anytime"} | changes))

    def _check_count(self) -> None:
        if self.count is not None:
            checks.one_of("count", self.count, tuple(_FORMS))
        if self._count in ("challenger", "doubt") and self.horizon is None:
            raise SettingError(f"count={self.count!r} needs a horizon. Pass horizon=, the number of decisions in all.")
        if self._count in ("false-alarm", "anytime") and self.horizon is not None:
            raise SettingError(f"count={self.count!r} does not look at a horizon. Leave one of the two out.")
        fixed = {"false_alarm": "truncated-gaussian", "log_base": 10.0, "scale": 1.0, "arithmetic": "log"}
        if self._count != "false-alarm" and any(getattr(self, name) != usual for name, usual in fixed.items()):
            which = "With a horizon" if self.horizon is not None else "Without a false-alarm count"
            raise SettingError(f"{which}, {', '.join(fixed)} do not enter N. Leave them at their defaults.")

    @property
    def _count(self) -> str:
        return self.count or ("false-alarm" if self.horizon is None else "challenger")

    @property
    def rate(self) -> float:
        """Candidates per unit of ln(1 / p_FA)."""
        return self.scale / math.log(self.log_base)

    @property
    def false_alarm_rule(self) -> int:
        """The number of the rule that finds p_FA (rules/choose/candidates.py)."""
        return _FALSE_ALARMS[self.false_alarm, self.arithmetic]

    def number_of_candidates(self, p: FloatArray, time: int | None = None, precisions: FloatArray | None = None) -> int:
        """Return N, the number of candidates to draw from Cat(p), float array (arm).

        ``precisions``, float array (arm), tell how well each arm is known: observations, or one over variances. The
        counts "challenger" and "anytime" need them.
        """
        if self._count != "false-alarm" and time is None:
            raise SettingError("This count needs the time. Pass time=, the number of this decision counted from 1.")
        form, numbers = self.compiled_settings
        if kinds.needs_precisions(form) and precisions is None:
            raise SettingError("This count asks how well each arm is known. Pass precisions=, such as observations.")
        shares = np.ascontiguousarray(p, dtype=np.float64)
        known = shares if precisions is None else checks.array("precisions", precisions, error=SettingError)
        if precisions is not None and (known.shape != shares.shape or not (known > 0.0).all()):
            raise SettingError(f"precisions must be {shares.size} positive numbers, got {checks.shown(precisions)}.")
        return count_candidates(form, numbers, math.nan if time is None else float(time), shares, known)

    def choose(self, evidence: Evidence) -> Choice:
        """Return the mode of N candidates drawn from the estimated probabilities."""
        form, settings, without_samples = self._settings
        if form != kinds.FALSE_ALARM and evidence.time < 1:  # asks for the time, an error where it is not known
            raise SettingError("time is counted from 1.")
        if evidence.samples_itself:
            p, settings = evidence.probability_optimal(self.samples), without_samples
        else:
            p = evidence.probability_optimal(None)
        precisions = evidence.precisions() if kinds.needs_precisions(form) else p
        arm, number, p, votes, propensities = sample_twice(form, settings, p, precisions, evidence.words)
        return Choice(arm, p, number, votes, propensities)

    def rule(self) -> Rule:
        """Return the form and the settings of the compiled rule."""
        horizon = math.nan if self.horizon is None else float(self.horizon)
        form = _FORMS[self._count]
        found = PolicySettings(
            self.samples or 0, self.max_candidates, self.ties == "first", self.false_alarm_rule, self.rate, horizon,
            0.0, np.empty((0, 0)),
        )  # fmt: skip
        return Rule(form, found)

    @property
    def compiled_settings(self) -> tuple[int, FloatArray]:
        """The form of the rule and its settings, as compiled loops over many decisions take them."""
        return self._settings[:2]

    @cached_property
    def _settings(self) -> tuple[int, FloatArray, FloatArray]:
        """The form of the rule, and its settings with and without samples of its own."""
        form, found = self.rule()
        return form, settings_array(found), settings_array(found._replace(samples=0))
