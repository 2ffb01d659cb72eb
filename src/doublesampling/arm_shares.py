"""Shares of arms as users write them: arms by name or number, one share for all arms or a dictionary of shares."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from doublesampling import checks
from doublesampling.checks import shown
from doublesampling.errors import SettingError
from doublesampling.rules import allocate

Arm = str | int
"""An arm by its name, or by its number counted from 0."""
Arms = int | Sequence[str]
"""How many arms there are, or their names."""
Shares = float | Mapping[Any, float]
"""One share for all arms, or the shares of some."""
T = TypeVar("T")

CONTROL_RULES = {"sqrt": allocate.SQUARE_ROOT, "match": allocate.MATCH}


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


def check_arm(setting: str, arm: object) -> Arm:
    """Return an arm that is given by name or by number."""
    if isinstance(arm, (int, np.integer)) and not isinstance(arm, bool) and arm >= 0:
        return int(arm)
    if isinstance(arm, str) and arm:
        return arm
    raise SettingError(f"{setting} must name arms, by name or by number counted from 0, got {shown(arm)}.")


def check_shares(name: str, given: Any) -> Any:
    """Return one share, or shares by arm."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {
            check_arm(name, arm): checks.within(f"{name}[{arm!r}]", share, 0.0, 1.0) for arm, share in given.items()
        }
    return checks.within(name, given, 0.0, 1.0, hint="Write one share for all arms, or a dictionary of shares by arm.")


def check_fixed(name: str, given: Any) -> dict[Arm, float | str]:
    """Return shares by arm, of which one may be a rule for the control."""
    if not isinstance(given, Mapping) or not given:
        raise SettingError(
            f'{name} must be a dictionary of shares by arm, such as {{"placebo": 0.3}}, got {shown(given)}.'
        )
    made: dict[Arm, float | str] = {}
    for arm, share in given.items():
        if isinstance(share, str):
            checks.one_of(f"{name}[{arm!r}]", share, CONTROL_RULES)
        made[check_arm(name, arm)] = (
            share if isinstance(share, str) else checks.within(f"{name}[{arm!r}]", share, 0.0, 1.0)
        )
    if sum(isinstance(share, str) for share in made.values()) > 1:
        raise SettingError(f"{name} must have a rule for one arm only, the control, got {shown(given)}.")
    return made


def check_control(given: Any) -> Any:
    """Return the control arm, or the arm with its share or its rule."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return check_arm("control", given)
    if len(given) != 1:
        raise SettingError(f'control must name one arm, such as {{"placebo": "sqrt"}}, got {shown(given)}.')
    return check_fixed("control", given)
