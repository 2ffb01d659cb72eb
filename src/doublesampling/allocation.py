"""Limits on how often each arm is played: floors, caps, fixed shares, a control, burn-in and permuted blocks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.checks import settings, shown
from doublesampling.errors import SettingError
from doublesampling.rules import allocate

FloatArray = NDArray[np.float64]

Arm = str | int
"""An arm by its name, or by its number counted from 0."""
Arms = int | Sequence[str]
"""How many arms there are, or their names."""
Shares = float | Mapping[Any, float]
"""One share for all arms, or the shares of some."""

T = TypeVar("T")

UPDATES = ("decision", "look")
CONTROL_RULES = {"sqrt": allocate.SQUARE_ROOT, "match": allocate.MATCH}
_SLACK = 1e-9  # what rounding may add: ten shares of 0.1 are one


@settings
class Allocation:
    """Limits on the probability with which each arm is played, whatever the policy.

    An allocation maps the exact propensities of a policy to exact propensities, from which the arm is drawn and which
    are recorded. Arms are given by name, or by number counted from 0.

    ``floor`` f gives every arm at least f and divides the rest as the policy would: f + (1 - A f) w for A arms.
    ``minimum`` and ``cap``, one share for all arms or a dictionary, leave a policy's propensities as they are where
    they lie between both, hold the others at the limit and rescale the rest, until all limits hold. ``fixed`` is a
    dictionary of shares that stay as they are. ``control`` names the control arm, whose share follows a rule:
    "sqrt" (one of K arms gets sqrt(K - 1) / (sqrt(K - 1) + K - 1), the default), or "match" (the largest share of any
    other arm), written ``control={"placebo": "match"}``, or its share in ``fixed``.

    ``burn_in`` is the number of decisions per arm before the policy is asked, in permuted blocks of one per arm.
    ``block`` is the length of permuted blocks, whose slots are the shares rounded by largest remainder; propensities
    are then exact given the decisions before. ``update="look"`` renews shares only at the looks of a trial.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0] * 20 + [1] * 20, rewards=[0] * 20 + [1] * 20)
    >>> limits = ds.Allocation(floor=0.1)
    >>> ds.decide(ds.ThompsonSampling(), belief, state, seed=1, allocation=limits).propensities.round(3).tolist()
    [0.1, 0.9]
    """

    floor: float = 0.0
    minimum: Shares | None = None
    cap: Shares | None = None
    fixed: Mapping[Any, float | str] | None = None
    control: Arm | Mapping[Any, float | str] | None = None
    burn_in: int = 0
    block: int | None = None
    update: str | None = None

    def __post_init__(self) -> None:
        fix = object.__setattr__
        hint = "A floor is the least share of every arm, so it is at most one half."
        fix(self, "floor", checks.within("floor", self.floor, 0.0, 0.5, hint=hint))
        for name in ("minimum", "cap"):
            fix(self, name, _check_shares(name, getattr(self, name)))
        fix(self, "fixed", None if self.fixed is None else _check_fixed("fixed", self.fixed))
        fix(self, "control", _check_control(self.control))
        fix(self, "burn_in", checks.integer("burn_in", self.burn_in, least=0, most=10**9))
        if self.block is not None:
            hint = "A block is a number of decisions."
            fix(self, "block", checks.integer("block", self.block, least=2, most=10**6, hint=hint))
        if self.update is not None:
            checks.one_of("update", self.update, UPDATES)
        self._check_together()

    def __hash__(self) -> int:
        return hash(repr(self))

    def _check_together(self) -> None:
        """Refuse what no number of arms could meet."""
        least, most = self.minimum, self.cap
        if isinstance(least, float) and isinstance(most, float) and least > most:
            raise SettingError(f"minimum must be at most cap, got minimum={least:g} and cap={most:g}.")
        if isinstance(most, float) and self.floor > most:
            raise SettingError(f"floor must be at most cap, got floor={self.floor:g} and cap={most:g}.")
        given = [share for share in (self.fixed or {}).values() if isinstance(share, float)]
        if sum(given) > 1.0 + _SLACK:
            raise SettingError(f"fixed shares must add up to at most 1, got {shown(self.fixed)}, sum {sum(given):g}.")

    @property
    def needs_past(self) -> bool:
        """Whether a decision depends on the arms of earlier decisions: with a burn-in, or in blocks."""
        return self.burn_in > 0 or self.block is not None

    @property
    def at_looks(self) -> bool:
        """Whether shares are renewed only at the looks of a trial."""
        return self.update == "look"

    def limits(self, arms: Arms) -> allocate.Limits:
        """Return the limits on the shares of these arms, as the rules take them; refuse those that cannot all hold."""
        names = arm_names(arms)
        minimum, cap, fixed = np.zeros(len(names)), np.ones(len(names)), np.full(len(names), math.nan)
        for name, given, out in (("minimum", self.minimum, minimum), ("cap", self.cap, cap)):
            if isinstance(given, Mapping):
                for arm, limit in by_number(name, given, names).items():
                    out[arm] = limit
            elif given is not None:
                out[:] = given
        shares, control = self._shares(names)
        for arm, share in shares.items():
            if not isinstance(share, str):
                fixed[arm] = share
        rule = CONTROL_RULES.get(shares.get(control), allocate.FREE)  # type: ignore[arg-type]
        made = allocate.Limits(self.floor, minimum, cap, fixed, control, rule)
        self._check_limits(made, names)
        return made

    def _shares(self, names: Sequence[str]) -> tuple[dict[int, float | str], int]:
        """Return fixed shares and the rule for the control by the arm's number, and the control, -1 for none."""
        shares = by_number("fixed", self.fixed or {}, names)
        if self.control is None:
            return shares, next((arm for arm, share in shares.items() if isinstance(share, str)), -1)
        if isinstance(self.control, Mapping):
            [(control, share)] = by_number("control", self.control, names).items()
            if control in shares:
                raise SettingError(f"The share of {names[control]!r} is given twice, in fixed and in control.")
            shares[control] = share
        else:
            control = find_arm("control", self.control, names)
            shares.setdefault(control, "sqrt")
        for arm, share in shares.items():
            if isinstance(share, str) and arm != control:
                raise SettingError(
                    f"fixed has the rule {share!r} for {names[arm]!r}, but the control is {names[control]!r}. Name one."
                )
        return shares, control

    def _check_limits(self, limits: allocate.Limits, names: Sequence[str]) -> None:
        """Raise SettingError, with the numbers, where shares cannot keep all limits."""
        if limits.control_rule == allocate.MATCH and (
            not np.isnan(limits.fixed).all() or isinstance(self.minimum, Mapping) or isinstance(self.cap, Mapping)
        ):
            raise SettingError(
                "A control that matches the largest share takes no shares fixed for other arms, and minimum and cap "
                "only as one share for all arms."
            )
        least = np.maximum(limits.minimum, limits.floor)
        for arm, name in enumerate(names):
            share = self.share_held(limits, arm)
            if share is not None and share < limits.floor - _SLACK:
                raise SettingError(f"The share of {name!r} is {share:g}, below the floor of {limits.floor:g}.")
            if share is None and least[arm] > limits.cap[arm]:
                raise SettingError(f"{name!r} must have at least {least[arm]:g} and at most {limits.cap[arm]:g}.")
        held = [self.share_held(limits, arm) for arm in range(len(names))]
        free = np.array([share is None for share in held])
        sure = float(sum(share for share in held if share is not None))
        low, high = sure + float(least[free].sum()), sure + float(limits.cap[free].sum())
        if low > 1.0 + _SLACK or high < 1.0 - _SLACK:
            what = f"add up to at least {low:g}" if low > 1.0 else f"add up to at most {high:g}"
            raise SettingError(
                f"The shares of {len(names)} arms must add up to 1, but under {self!r} they {what}. "
                + (f"floor can be at most {1.0 / len(names):g}." if self.floor > 1.0 / len(names) else "Change them.")
            )

    @staticmethod
    def share_held(limits: allocate.Limits, arm: int) -> float | None:
        """Return the share that an arm has whatever the policy says; None where it depends on the policy."""
        if arm == limits.control and limits.control_rule == allocate.SQUARE_ROOT:
            root = math.sqrt(limits.fixed.size - 1.0)
            return root / (root + limits.fixed.size - 1.0)
        return None if math.isnan(limits.fixed[arm]) else float(limits.fixed[arm])

    def named(self, names: Sequence[str]) -> Self:
        """Return the same allocation with every arm by its name, as a design stores it."""

        def rename(what: str, given: Any) -> Any:
            if isinstance(given, Mapping):
                return {names[arm]: share for arm, share in by_number(what, given, names).items()}
            return given

        parts = {field.name: rename(field.name, getattr(self, field.name)) for field in fields(self)}
        if self.control is not None and not isinstance(self.control, Mapping):
            parts["control"] = names[find_arm("control", self.control, names)]
        return type(self)(**parts)


def arm_names(arms: Arms) -> Sequence[str]:
    """Return the names of arms; those that have none are called by their number."""
    return [str(arm) for arm in range(arms)] if isinstance(arms, int) else arms


def by_number(setting: str, given: Mapping[Arm, T], names: Sequence[str]) -> dict[int, T]:
    """Return values by the number of their arm, from values by name or number."""
    made: dict[int, T] = {}
    for arm, value in given.items():
        place = find_arm(setting, arm, names)
        if place in made:
            raise SettingError(f"{setting} has two entries for the arm {names[place]!r}. Leave one out.")
        made[place] = value
    return made


def find_arm(setting: str, arm: Arm, names: Sequence[str]) -> int:
    """Return the number of an arm that is given by name or by number."""
    if isinstance(arm, str) and arm in names:
        return list(names).index(arm)
    if isinstance(arm, int) and 0 <= arm < len(names):
        return arm
    listed = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    if arm in CONTROL_RULES:
        listed += f'. For a rule write control={{{names[0]!r}: "{arm}"}}'
    raise SettingError(f"{setting} names the arm {arm!r}, which is none of the {len(names)} arms: {listed}.")


def _check_arm(setting: str, arm: object) -> Arm:
    if isinstance(arm, (int, np.integer)) and not isinstance(arm, bool) and arm >= 0:
        return int(arm)
    if isinstance(arm, str) and arm:
        return arm
    raise SettingError(f"{setting} must name arms, by name or by number counted from 0, got {shown(arm)}.")


def _check_shares(name: str, given: Any) -> Any:
    """Return one share, or shares by arm."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {
            _check_arm(name, arm): checks.within(f"{name}[{arm!r}]", share, 0.0, 1.0) for arm, share in given.items()
        }
    return checks.within(name, given, 0.0, 1.0, hint="Write one share for all arms, or a dictionary of shares by arm.")


def _check_fixed(name: str, given: Any) -> dict[Arm, float | str]:
    """Return shares by arm, of which one may be a rule for the control."""
    if not isinstance(given, Mapping) or not given:
        raise SettingError(
            f'{name} must be a dictionary of shares by arm, such as {{"placebo": 0.3}}, got {shown(given)}.'
        )
    made: dict[Arm, float | str] = {}
    for arm, share in given.items():
        if isinstance(share, str):
            checks.one_of(f"{name}[{arm!r}]", share, CONTROL_RULES)
        made[_check_arm(name, arm)] = (
            share if isinstance(share, str) else checks.within(f"{name}[{arm!r}]", share, 0.0, 1.0)
        )
    if sum(isinstance(share, str) for share in made.values()) > 1:
        raise SettingError(f"{name} must have a rule for one arm only, the control, got {shown(given)}.")
    return made


def _check_control(given: Any) -> Any:
    """Return the control arm, or the arm with its share or its rule."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return _check_arm("control", given)
    if len(given) != 1:
        raise SettingError(f'control must name one arm, such as {{"placebo": "sqrt"}}, got {shown(given)}.')
    return _check_fixed("control", given)
