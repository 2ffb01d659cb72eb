"""Names of experiments, arms and units, and the codes that stand for arms: texts that both databases can store."""

import re
import secrets
import unicodedata
from collections.abc import Sequence

import numpy as np

from doublesampling import checks
from doublesampling.errors import ArmError, NameTakenError, SettingError

_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"  # without letters that look like a digit
# a zero-width joiner is visible only between emoji; elsewhere it would make different names look equal
_PICTURE = "[\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
_JOINED = re.compile(f"(?<={_PICTURE})\u200d(?={_PICTURE})|(?<={_PICTURE}\ufe0f)\u200d(?={_PICTURE})")


def check_arms(arms: object) -> tuple[str, ...]:
    """Return the names of the arms; raise where there are fewer than two, or two are equal."""
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
    """Return a text in Unicode normal form NFC, in which equal words have equal characters.

    >>> normalized("Ame\u0301lie") == normalized("Am\u00e9lie")
    True
    """
    return unicodedata.normalize("NFC", text)


def check_text(what: str, value: object) -> str:
    """Return a name that both databases can store: normalized, printable, without surrounding blanks."""
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
    """Return a reason as it is stored, without surrounding blanks."""
    return check_text("reason", reason.strip() if isinstance(reason, str) else reason)


def make_code(letter: int, digits: int) -> str:
    """Return a code from two random numbers: a letter and two digits."""
    return f"{_LETTERS[letter % len(_LETTERS)]}{digits % 100:02d}"


def make_codes(codes: object, arms: Sequence[str]) -> tuple[str, ...] | None:
    """Return one code per arm: the given ones, random ones for True, None for False."""
    if codes is None or codes is False:
        return None
    if codes is True:
        made: list[str] = []
        while len(made) < len(arms):
            code = make_code(secrets.randbelow(len(_LETTERS)), secrets.randbelow(100))
            made += [code] if code not in made else []
        return tuple(made)
    if isinstance(codes, str) or not hasattr(codes, "__iter__"):
        raise SettingError(f"codes must be True or a list with a code per arm, got {checks.shown(codes)}.")
    given = tuple(check_text("the code of an arm", code) for code in codes)
    if len(given) != len(arms) or len(set(given)) < len(given):
        raise SettingError(f"codes must be {len(arms)} different texts, one per arm, got {checks.shown(list(given))}.")
    return given
