"""When a trial looks at its outcomes, and what ends it: superiority, inferiority, equivalence, futility."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.checks import settings, shown
from doublesampling.errors import SettingError
from doublesampling.rules.looks.bundles import LookRule

FloatArray = NDArray[np.float64]
Threshold = float | Sequence[float]
"""One probability for all looks, or one per look."""

THRESHOLDS = ("superiority", "inferiority", "equivalence", "futility")


@settings
class Stopping:
    """When a trial looks at its outcomes, and the posterior probabilities that end it.

    ``looks`` is a number of outcomes between looks, or a list of numbers of known outcomes. Thresholds are one
    probability, or one per look. At each look, in this order: arms are dropped whose P(best) is below ``inferiority``
    (with a control: whose P(better than the control) is); the trial ends for superiority where P(best), or P(better
    than the control), is above ``superiority``; for equivalence where P(all remaining arms lie within
    ``equivalence_margin``) is above ``equivalence``; for futility where P(no arm beats the control by
    ``futility_margin``) is above ``futility``. It also ends when one arm is left.

    ``control`` names an arm, or gives its number. With ``promote``, a superior arm takes the place of the control
    instead of ending the trial. Looks do nothing until every remaining arm has ``minimum`` known outcomes.
    ``enforce=False`` makes a live experiment report what a look says without acting on it.

    >>> rule = Stopping(looks=100, superiority=0.99, inferiority=0.01)
    >>> rule.schedule(350)
    (100, 200, 300, 350)
    """

    looks: int | Sequence[int]
    superiority: Threshold | None = None
    inferiority: Threshold | None = None
    equivalence: Threshold | None = None
    equivalence_margin: float | None = None
    futility: Threshold | None = None
    futility_margin: float | None = None
    control: str | int | None = None
    minimum: int = 0
    enforce: bool = True
    promote: bool = False

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "looks", _check_looks(self.looks))
        for name in THRESHOLDS:
            fix(self, name, self._check_threshold(name, getattr(self, name)))
        if all(getattr(self, name) is None for name in THRESHOLDS):
            raise SettingError("Stopping needs a threshold: superiority, inferiority, equivalence or futility.")
        fix(self, "equivalence_margin", self._check_margin("equivalence", 1e-12))
        fix(self, "futility_margin", self._check_margin("futility", 0.0))
        if self.control is None and (self.futility is not None or self.promote):
            what = "futility" if self.futility is not None else "promote"
            raise SettingError(f"{what} compares arms with a control. Pass control=, the name or number of an arm.")
        if self.control is not None and not isinstance(self.control, str):
            fix(self, "control", checks.integer("control", self.control, least=0))
        fix(self, "minimum", checks.integer("minimum", self.minimum, least=0, most=10**9))
        fix(self, "enforce", checks.flag("enforce", self.enforce))
        fix(self, "promote", checks.flag("promote", self.promote))
        self._check_order()

    def _check_threshold(self, name: str, value: Any) -> float | tuple[float, ...] | None:
        if value is None:
            return None
        if isinstance(value, (list, tuple, np.ndarray)):
            given = checks.array(name, value, error=SettingError)
            looks = len(self.looks) if isinstance(self.looks, tuple) else given.size
            if given.ndim != 1 or given.size != looks or not given.size:
                raise SettingError(f"{name} must be one probability or one per look ({looks}), got {shown(value)}.")
            return tuple(_probability(f"{name}[{i}]", float(p)) for i, p in enumerate(given))
        return _probability(name, value)

    def _check_margin(self, name: str, least: float) -> float | None:
        margin, threshold = getattr(self, f"{name}_margin"), getattr(self, name)
        if (margin is None) != (threshold is None):
            there, missing = (name, f"{name}_margin") if margin is None else (f"{name}_margin", name)
            raise SettingError(f"{there} needs {missing}, too. Pass both, or neither.")
        if margin is None:
            return None
        hint = "A margin is a difference of expected rewards."
        return checks.within(f"{name}_margin", margin, least, 1e50, hint=hint)

    def _check_order(self) -> None:
        if self.superiority is None or self.inferiority is None:
            return
        high, low = np.broadcast_arrays(self.superiority, self.inferiority)
        if (low >= high).any():
            raise SettingError(
                f"inferiority must be below superiority, got {shown(self.inferiority)} and {shown(self.superiority)}."
            )

    def schedule(self, horizon: int) -> tuple[int, ...]:
        """Return the numbers of known outcomes at which there is a look, in a trial of so many participants.

        Looks at an interval include one at the end.
        """
        if isinstance(self.looks, tuple):
            if self.looks[-1] > horizon:
                raise SettingError(
                    f"looks must lie within the horizon of {horizon} participants, got {self.looks[-1]}. Raise the "
                    "horizon, or leave the look out."
                )
            return self.looks
        assert isinstance(self.looks, int)
        if self.looks > horizon:
            raise SettingError(f"looks must be at most the horizon, {horizon}, got {self.looks}.")
        return tuple(dict.fromkeys([*range(self.looks, horizon + 1, self.looks), horizon]))

    def check_for(self, arms: Sequence[str], horizon: int | None = None) -> None:
        """Refuse a control that is not an arm, and looks or thresholds that do not fit the horizon."""
        self.control_among(arms)
        if self.control is None and self.inferiority is not None:
            most = float(np.max(self.inferiority))
            if most >= 1.0 / len(arms):
                raise SettingError(
                    f"inferiority must be below 1/{len(arms)}, the P(best) of {len(arms)} equal arms, got {most:g}."
                )
        if horizon is not None:
            self.rule(horizon)

    def control_among(self, arms: Sequence[str]) -> int:
        """Return the number of the control among the names of the arms; -1 where there is none."""
        if self.control is None:
            return -1
        if isinstance(self.control, str) and self.control in arms:
            return list(arms).index(self.control)
        if isinstance(self.control, int) and self.control < len(arms):
            return self.control
        names = ", ".join(map(repr, arms))
        raise SettingError(f"control must be one of the arms {names}, got {shown(self.control)}.")

    def rule(self, horizon: int) -> LookRule:
        """Return the thresholds of every look as the compiled rules take them."""
        looks = len(self.schedule(horizon))
        found = {}
        for name in THRESHOLDS:
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != looks:
                raise SettingError(
                    f"{name} must be one probability or one per look; there are {looks} looks, got {len(value)}."
                )
            found[name] = np.ascontiguousarray(
                np.broadcast_to(math.nan if value is None else value, looks), dtype=float
            )
        return self._look_rule(found)

    def rule_at(self, look: int) -> LookRule:
        """Return the thresholds of one look, counted from 0; beyond the last one, those of the last."""
        found = {}
        for name in THRESHOLDS:
            value = getattr(self, name)
            chosen = value[min(look, len(value) - 1)] if isinstance(value, tuple) else value
            found[name] = np.array([math.nan if chosen is None else chosen])
        return self._look_rule(found)

    def _look_rule(self, thresholds: dict[str, FloatArray]) -> LookRule:
        return LookRule(
            **thresholds,
            equivalence_margin=self.equivalence_margin or 0.0,
            futility_margin=self.futility_margin or 0.0,
            promote=self.promote,
            minimum=self.minimum,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, for JSON; ``Stopping(**settings)`` reads them back."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        changed = {f.name: found[f.name] for f in fields(self) if found[f.name] != f.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}

    def named(self, names: Sequence[str]) -> Self:
        """Return the same rule with the control by its name, as a design stores it."""
        return self if self.control is None else replace(self, control=names[self.control_among(names)])

    def next_look(self, looks_done: int) -> int | None:
        """Return the number of known outcomes at which the next look is due; None after the last one."""
        if isinstance(self.looks, tuple):
            return self.looks[looks_done] if looks_done < len(self.looks) else None
        assert isinstance(self.looks, int)
        return (looks_done + 1) * self.looks


def _probability(name: str, value: object) -> float:
    plain = checks.real(name, value, wanted="a probability between 0 and 1", error=SettingError)
    if not 0.0 < plain < 1.0:
        raise SettingError(f"{name} must lie strictly between 0 and 1, got {plain:g}. Leave it out for no such rule.")
    return plain


def _check_looks(value: object) -> int | tuple[int, ...]:
    hint = "Pass the outcomes between looks, or a list of numbers of outcomes."
    if not isinstance(value, (list, tuple, range, np.ndarray)):
        return checks.integer("looks", value, least=1, most=10**9, hint=hint)
    found = tuple(checks.integer(f"looks[{i}]", n, least=1, most=10**9, hint=hint) for i, n in enumerate(value))
    if not found or any(later <= earlier for earlier, later in itertools.pairwise(found)):
        raise SettingError(f"looks must be numbers of outcomes in rising order, got {shown(value)}.")
    return found
