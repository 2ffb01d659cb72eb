"""Options of the command line that limit the shares of arms: ``--floor 0.1 --control placebo=sqrt``."""

from collections.abc import Callable, Sequence
from typing import Any

from doublesampling.errors import SettingError


def add_options(add: Callable[..., Any]) -> None:
    """Add the options of an allocation."""
    several = "one share for all arms, or ARM=SHARE for some"
    add("--floor", type=float, metavar="F", help="least share of every arm; the policy divides the rest")
    add("--minimum", nargs="+", metavar="S", help=f"lower limit of a share: {several}")
    add("--cap", nargs="+", metavar="S", help=f"upper limit of a share: {several}")
    add("--fixed", nargs="+", metavar="ARM=SHARE", help="shares that stay as they are")
    add("--control", metavar="ARM[=RULE]", help="the control arm; its share is sqrt (default), match, or a number")
    add("--burn-in", type=int, metavar="N", help="decisions per arm before the policy is asked, in permuted blocks")
    add("--block", type=int, metavar="B", help="decide in permuted blocks of B decisions")


def read_allocation(options: Any) -> Any:
    """Return the allocation that the options describe; None where they describe none."""
    from doublesampling.allocation import Allocation

    given = {
        "floor": options.floor,
        "minimum": _one_or_some("--minimum", options.minimum),
        "cap": _one_or_some("--cap", options.cap),
        "fixed": None if options.fixed is None else _shares("--fixed", options.fixed),
        "control": None if options.control is None else _control(options.control),
        "burn_in": options.burn_in,
        "block": options.block,
    }
    known = {name: value for name, value in given.items() if value is not None}
    return Allocation(**known) if known else None


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"{option} must be a share such as 0.2, or ARM=SHARE, got {text!r}.") from None


def _one_or_some(option: str, given: Sequence[str] | None) -> Any:
    """Return one share for all arms, or a dictionary of shares."""
    if given is None:
        return None
    return _number(option, given[0]) if len(given) == 1 and "=" not in given[0] else _shares(option, given)


def _shares(option: str, given: Sequence[str]) -> dict[str, float]:
    made: dict[str, float] = {}
    for item in given:
        arm, equals, share = item.rpartition("=")
        if not equals or not arm:
            raise SettingError(f"{option} must be ARM=SHARE, such as placebo=0.3, got {item!r}.")
        if arm in made:
            raise SettingError(f"{option} names {arm!r} twice.")
        made[arm] = _number(option, share)
    return made


def _control(text: str) -> Any:
    arm, equals, rule = text.rpartition("=")
    if not equals:
        return text
    return {arm: rule if rule in ("sqrt", "match") else _number("--control", rule)}
