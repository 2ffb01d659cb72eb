"""An experiment's design as plain JSON: names and settings, never code."""

import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from doublesampling import beliefs, checks, policies
from doublesampling.errors import ArmError, DoubleSamplingError, NameTakenError, SettingError

UNITS = ("once", "many")
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"  # none that looks like a digit
# a zero-width joiner is seen only between pictures, such as those of a family; elsewhere it would hide a difference
_PICTURE = "[\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
_JOINED = re.compile(f"(?<={_PICTURE})\u200d(?={_PICTURE})|(?<={_PICTURE}\ufe0f)\u200d(?={_PICTURE})")


@dataclass(frozen=True)
class Design:
    """What was decided before the first unit: arms, belief, policy, seed, and whether a unit is asked once.

    ``codes`` has a code per arm, which the service shows to blind keys instead of the arm's name; None where they may
    see the name.
    """

    arms: tuple[str, ...]
    belief: Any
    policy: Any
    seed: int
    units: str
    codes: tuple[str, ...] | None = None

    def code(self, arm: int) -> str | None:
        """The code of an arm; one that was added later has a code that follows from the seed."""
        if self.codes is None or arm < len(self.codes):
            return None if self.codes is None else self.codes[arm]
        taken = set(self.codes) | {str(self.code(earlier)) for earlier in range(len(self.codes), arm)}
        tries = (hashlib.sha256(f"{self.seed}/{arm}/{i}".encode()).digest() for i in count())
        return next(code for code in (_code(made[0], made[1]) for made in tries) if code not in taken)

    def check_truth(self, truth: Sequence[float]) -> None:
        """A supposed truth has a number for every arm."""
        if len(truth) != len(self.arms):
            raise SettingError(f"A truth needs one number per arm ({len(self.arms)}), got {len(truth)}.")

    @property
    def usual_horizon(self) -> int:
        """How many decisions to simulate where nobody says: what the policy plans for, or 500."""
        return getattr(self.policy, "horizon", None) or 500

    def to_json(self) -> str:
        """The design as text."""
        content = {
            "arms": list(self.arms),
            "belief": _describe(self.belief),
            "policy": _describe(self.policy),
            "seed": self.seed,
            "units": self.units,
        }
        if self.codes is not None:
            content["codes"] = list(self.codes)
        return json.dumps(content, allow_nan=False, ensure_ascii=False)


def design_from_json(text: str) -> Design:
    """Read a design that ``to_json`` wrote."""
    content = json.loads(text)
    belief, policy = build(content["belief"], beliefs), build(content["policy"], policies)
    codes = None if content.get("codes") is None else tuple(content["codes"])
    return Design(tuple(content["arms"]), belief, policy, int(content["seed"]), content["units"], codes)


def kinds(room: Any) -> list[str]:
    """The names of the beliefs, or of the policies, that a stored design may use."""
    member = "prior" if room is beliefs else "choose"
    public = {name: found for name, found in vars(room).items() if not name.startswith("_")}
    return sorted(name for name, found in public.items() if is_dataclass(found) and hasattr(found, member))


def _describe(thing: Any) -> dict[str, Any]:
    """A belief's or policy's class name and settings."""
    settings = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}
    return {"class": type(thing).__name__, "settings": settings}


def build(content: dict[str, Any], room: Any) -> Any:
    """A belief or policy from its class name and settings."""
    if content["class"] not in kinds(room):
        raise SettingError(
            f"This version knows no {content['class']!r}, which the stored design uses. Update the package."
        )
    return getattr(room, content["class"])(**content["settings"])


def check_arms(arms: object) -> tuple[str, ...]:
    """At least two different names."""
    if isinstance(arms, str) or not hasattr(arms, "__iter__"):
        raise ArmError(f'arms must be a list of names, got {checks.shown(arms)}. Write arms=["control", "new"].')
    names = tuple(check_text("the name of an arm", name) for name in arms)
    if len(names) < 2:
        raise ArmError(f"An experiment needs two arms to choose between, got {len(names)}.")
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise NameTakenError(f"Two arms are called {twice!r}. Give each its own name.")
    return names


def normalized(text: str) -> str:
    """Return a text in the form (NFC) in which equal words have equal characters.

    >>> normalized("Ame\u0301lie") == normalized("Am\u00e9lie")
    True
    """
    return unicodedata.normalize("NFC", text)


def check_text(what: str, value: object) -> str:
    """Return a name that both databases can keep: normalized, printable, without blanks at its ends."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str) or not value.strip() or len(normalized(value)) > 500:
        raise SettingError(f"{what} must be a text of 1 to 500 characters, got {checks.shown(value)}.")
    text = normalized(value)
    if text != text.strip():
        raise SettingError(f"{what} must not begin or end with a blank, got {checks.shown(value)}. Remove it.")
    if not _JOINED.sub("", text).isprintable():
        raise SettingError(f"{what} must be printable text, got {checks.shown(value)}. Remove control characters.")
    return text


def check_reason(reason: object) -> str:
    """Return a reason as it is stored; blanks at its ends do not matter."""
    return check_text("reason", reason.strip() if isinstance(reason, str) else reason)


def _code(letter: int, digits: int) -> str:
    return f"{_LETTERS[letter % len(_LETTERS)]}{digits % 100:02d}"


def make_codes(codes: object, arms: Sequence[str]) -> tuple[str, ...] | None:
    """A code per arm: those that were given, random ones for True, None for False."""
    if codes is None or codes is False:
        return None
    if codes is True:
        made: list[str] = []
        while len(made) < len(arms):
            code = _code(secrets.randbelow(len(_LETTERS)), secrets.randbelow(100))
            made += [code] if code not in made else []
        return tuple(made)
    if isinstance(codes, str) or not hasattr(codes, "__iter__"):
        raise SettingError(f"codes must be True or a list with a code per arm, got {checks.shown(codes)}.")
    given = tuple(check_text("the code of an arm", code) for code in codes)
    if len(given) != len(arms) or len(set(given)) < len(given):
        raise SettingError(f"codes must be {len(arms)} different texts, one per arm, got {checks.shown(list(given))}.")
    return given


def make_design(arms: object, belief: Any, policy: Any, seed: object, units: object, codes: object = None) -> Design:
    """A design that can be stored and read back."""
    names = check_arms(arms)
    belief = beliefs.BetaBernoulli(arms=len(names)) if belief is None else belief
    policy = policies.DoubleSampling() if policy is None else policy
    for what, thing, room in (("belief", belief, beliefs), ("policy", policy, policies)):
        if type(thing).__name__ not in kinds(room) or getattr(room, type(thing).__name__) is not type(thing):
            raise SettingError(
                f"{what} must be one of doublesampling's own, such as "
                f"{'BetaBernoulli(arms=2)' if what == 'belief' else 'DoubleSampling()'}, got {checks.shown(thing)}: "
                "a stored experiment names it, and must find it again."
            )
    if belief.arms != len(names):
        raise ArmError(f"The belief has {belief.arms} arms, but {len(names)} names were given. Make them agree.")
    known = checks.one_of("units", units, UNITS)
    design = Design(names, belief, policy, checks.seed(seed), known, make_codes(codes, names))
    if design_from_json(design.to_json()) != design:
        raise SettingError("This design does not survive being stored. Use plain numbers as settings.")
    return design


def grown(belief: Any, arms: int) -> Any:
    """The belief with one arm more, which starts at the prior that all arms share."""
    try:
        return replace(belief, arms=arms)
    except DoubleSamplingError:
        raise SettingError(
            f"{belief!r} has settings per arm, so the prior of a new arm is not known. "
            "Use settings that all arms share in experiments that may grow."
        ) from None
