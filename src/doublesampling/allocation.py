"""Limits on how often each arm is played: floors, caps, fixed shares, a control, burn-in and permuted blocks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np

from doublesampling import checks
from doublesampling.arm_shares import (
    CONTROL_RULES,
    Arm,
    Arms,
    Shares,
    arm_names,
    by_number,
    check_control,
    check_fixed,
    check_shares,
    find_arm,
)
from doublesampling.checks import settings, shown
from doublesampling.errors import SettingError
from doublesampling.rules import allocate

UPDATES = ("decision", "look")
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
            fix(self, name, check_shares(name, getattr(self, name)))
        fix(self, "fixed", None if self.fixed is None else check_fixed("fixed", self.fixed))
        fix(self, "control", check_control(self.control))
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
        kept: dict[Any, allocate.Limits] = self.__dict__.setdefault("_limits", {})
        key = arms if isinstance(arms, int) else tuple(arms)
        if key not in kept:
            self.check_active(arms, range(len(arm_names(arms))))
            kept[key] = self.resolve(arms)
        return kept[key]

    def resolve(self, arms: Arms) -> allocate.Limits:
        """Return the same for arms of which some may have been dropped: limits that cannot all hold are rescaled."""
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
        return allocate.Limits(self.floor, minimum, cap, fixed, control, rule)

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

    def check_active(self, arms: Arms, active: Sequence[int]) -> None:
        """Raise SettingError, with the numbers, where the shares of the active arms cannot keep all limits."""
        names, limits = arm_names(arms), self.resolve(arms)
        if limits.control_rule == allocate.MATCH and (
            not np.isnan(limits.fixed).all() or isinstance(self.minimum, Mapping) or isinstance(self.cap, Mapping)
        ):
            raise SettingError(
                "A control that matches the largest share takes no shares fixed for other arms, and minimum and cap "
                "only as one share for all arms."
            )
        low = high = sure = 0.0
        for arm in active:
            least, most = max(float(limits.minimum[arm]), limits.floor), float(limits.cap[arm])
            share = _held(limits, arm, len(active))
            if share is not None and share < limits.floor - _SLACK:
                raise SettingError(f"The share of {names[arm]!r} is {share:g}, below the floor of {limits.floor:g}.")
            if share is None and least > most:
                raise SettingError(f"{names[arm]!r} must have at least {least:g} and at most {most:g}.")
            low, high = (low + least, high + most) if share is None else (low + share, high + share)
            sure = sure if share is None else sure + share
        if low > 1.0 + _SLACK or high < 1.0 - _SLACK:
            what = f"at least {low:g}" if low > 1.0 else f"at most {high:g}"
            largest = 1.0 / len(active)
            hint = f"floor can be at most {largest:g}." if self.floor > largest + _SLACK else "Change them."
            raise SettingError(f"Shares of {len(active)} arms add up to 1, but to {what} under {self!r}. {hint}")
        free = [names[arm] for arm in active if _held(limits, arm, len(active)) is None]
        if free and sure > 1.0 - _SLACK:
            raise SettingError(f"Fixed shares add up to {sure:g} under {self!r}, which leaves none for {free[0]!r}.")

    def among(self, names: Sequence[str]) -> Self:
        """Return the same allocation for some of its arms, which it has by name: without what it says of others."""

        def keep(given: Any) -> Any:
            if isinstance(given, Mapping):
                return {arm: share for arm, share in given.items() if arm in names} or None
            return given

        parts = {field.name: keep(getattr(self, field.name)) for field in fields(self)}
        if isinstance(self.control, str) and self.control not in names:
            parts["control"] = None
        return type(self)(**parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, for JSON; ``Allocation(**settings)`` reads them back."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

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


def _held(limits: allocate.Limits, arm: int, active: int) -> float | None:
    """Return the share that an arm has whatever the policy says; None where it depends on the policy."""
    if arm == limits.control and limits.control_rule == allocate.SQUARE_ROOT:
        root = math.sqrt(active - 1.0)
        return root / (root + active - 1.0) if active > 1 else 1.0
    return None if math.isnan(limits.fixed[arm]) else float(limits.fixed[arm])


def check_allocation(given: object) -> Allocation:
    """Return an allocation, or say what was wanted."""
    if not isinstance(given, Allocation):
        raise SettingError(f"allocation must be one such as Allocation(floor=0.1), got {shown(given)}.")
    return given
