"""Requests for decisions, with checked texts and idempotency keys."""

from dataclasses import dataclass
from typing import Any

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.live.design import check_text


@dataclass(frozen=True)
class Request:
    """One request for a decision."""

    unit: str | None
    context: Any
    request_key: str | None
    scope: str = ""
    """The owner of the key; "" is the scope that all plain Python callers share."""
    part: int = 0
    """0 for ``ask``; the items of one ``ask_many``, which share a key, are numbered from 1."""
    actor: str | None = None


def make_request(
    unit: object,
    context: Any,
    request_key: object,
    *,
    scope: object = None,
    part: int = 0,
    actor: str | None = None,
) -> Request:
    """Return a request whose texts both databases can store."""
    return Request(
        None if unit is None else check_text("unit", unit),
        context,
        None if request_key is None else check_text("request_key", request_key),
        check_scope(scope),
        part,
        actor,
    )


def make_requests(
    n: int | None, units: Any, contexts: Any, request_key: object, *, scope: object, actor: str | None
) -> list[Request]:
    """Return the requests of a batch, which share a key."""
    if isinstance(units, str):
        shown = checks.shown(units)
        raise SettingError(f"units must be a list of names, got the text {shown}. Write units=[{shown}].")
    given = [len(part) for part in (units, contexts) if part is not None]
    count = checks.integer("n", given[0] if n is None and given else n, least=1, most=100_000)
    if any(size != count for size in given):
        raise SettingError(f"{count} decisions need as many units and contexts, got {' and '.join(map(str, given))}.")
    return [
        make_request(
            None if units is None else units[i],
            None if contexts is None else contexts[i],
            request_key,
            scope=scope,
            part=i + 1,
            actor=actor,
        )
        for i in range(count)
    ]


def check_scope(scope: object) -> str:
    """Return the owner of a request key as it is stored."""
    return "" if scope is None else check_text("scope", scope)
