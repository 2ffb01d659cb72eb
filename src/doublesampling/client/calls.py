"""The HTTP requests of the client, one function each: arguments are checked, responses are parsed.

Every request may be sent again without effect. Decisions, imports and changes of an experiment carry an idempotency
key, which is drawn once per call; outcomes and voids are no-ops where the same one is stored; a new experiment carries
its seed, by which a second attempt recognises the first.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from doublesampling import checks
from doublesampling.client import parsing
from doublesampling.client.records import parse_time
from doublesampling.errors import ContextError, RewardError, SettingError
from doublesampling.live.changes import arm_index
from doublesampling.live.design import check_reason, check_text
from doublesampling.live.explain import Explanation
from doublesampling.live.queries.looks import LookRecord
from doublesampling.live.queries.revisions import check_id
from doublesampling.live.records import Outcome, Receipt
from doublesampling.live.replay import Replay
from doublesampling.live.requests import make_requests
from doublesampling.live.telling import to_pairs

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
FRESH = {"Cache-Control": "no-cache"}
"""Asks for a response that is computed now."""
AUDIT_PAGE = 1000


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One request, and how its response is read."""

    method: str
    path: str
    parse: Callable[[Any, bool], T]
    """Return the result from the JSON content, given whether an earlier attempt may have been stored."""
    body: Any = None
    query: Mapping[str, str | int] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bool = False
    """Whether the response is text and not JSON."""
    recover: "Call[T | None] | None" = None
    """Finds what an unclear attempt has stored, where a further one is refused because the name is taken."""


def experiment_path(name: str, *parts: str) -> str:
    """Return the path of an experiment, or of something below it.

    >>> experiment_path("Dosis 10 %", "decisions")
    '/v1/experiments/Dosis%2010%20%25/decisions'
    """
    return "/".join(["/v1/experiments", *(quote(part, safe="") for part in (name, *parts))])


def check_name(name: object) -> str:
    """Return the name of an experiment that a URL can hold."""
    text = check_text("name", name)
    if "/" in text or text in (".", ".."):
        raise SettingError(f"name must not contain a slash, got {text[:50]!r}: it becomes part of a URL.")
    return text


def key_header(request_key: object = None) -> dict[str, str]:
    """Return the header with an idempotency key: the given one, or a new random one."""
    if request_key is None:
        return {"Idempotency-Key": f"client-{secrets.token_hex(16)}"}
    key = check_text("request_key", request_key)
    if not key.isascii():
        raise SettingError(f"request_key must be ASCII text, got {key!r}: it is sent as an HTTP header.")
    return {"Idempotency-Key": key}


def _context(context: Any) -> Any:
    if context is None or isinstance(context, Mapping):
        return context
    return checks.array("context", context, error=ContextError).tolist()


def ask(name: str, unit: object, context: Any, request_key: object) -> Call[Receipt]:
    """Return the request for one decision."""
    body = {"unit": None if unit is None else check_text("unit", unit), "context": _context(context)}
    return Call(
        method="POST",
        path=experiment_path(name, "decisions"),
        body=body,
        headers=key_header(request_key),
        parse=lambda found, _: parsing.receipt(found, name),
    )


def ask_many(name: str, n: int | None, units: Any, contexts: Any, request_key: object) -> Call[Sequence[Receipt]]:
    """Return the request for several decisions."""
    wanted = make_requests(n, units, contexts, None, scope=None, actor=None)
    return Call(
        method="POST",
        path=experiment_path(name, "decisions", "batch"),
        body={
            "count": len(wanted),
            "units": None if units is None else [each.unit for each in wanted],
            "contexts": None if contexts is None else [_context(each.context) for each in wanted],
        },
        headers=key_header(request_key),
        parse=lambda found, _: [parsing.receipt(each, name) for each in found["decisions"]],
    )


def _reward(reward: object) -> float:
    return checks.real("reward", reward, error=RewardError)


def tell(name: str, decision: object, reward: object, imputed: object, reason: object) -> Call[Outcome]:
    """Return the request that stores an outcome."""
    body = {"reward": _reward(reward), "imputed": checks.flag("imputed", imputed), "reason": _optional(reason)}
    path = experiment_path(name, "decisions", check_id(decision), "outcome")
    return Call(method="PUT", path=path, body=body, parse=lambda found, _: parsing.outcome(found))


def tell_many(name: str, told: object, imputed: object) -> Call[Sequence[Outcome]]:
    """Return the request that stores several outcomes."""
    outcomes = [{"decision": check_id(which), "reward": _reward(reward)} for which, reward in to_pairs(told)]
    return Call(
        method="POST",
        path=experiment_path(name, "outcomes"),
        body={"outcomes": outcomes, "imputed": checks.flag("imputed", imputed)},
        parse=lambda found, _: [parsing.outcome(each) for each in found["outcomes"]],
    )


def revise(name: str, decision: object, what: str, reason: object, reward: object = None) -> Call[Outcome]:
    """Return the request for one of "amendments", "withdrawals" and "void"."""
    value = {"reward": _reward(reward)} if what == "amendments" else {}
    path = experiment_path(name, "decisions", check_id(decision), what)
    body = {**value, "reason": check_reason(reason)}
    return Call(method="POST", path=path, body=body, parse=lambda found, _: parsing.outcome(found))


def _optional(reason: object) -> str | None:
    return None if reason is None else check_reason(reason)


def add_history(name: str, arms: Any, rewards: Any, contexts: Any, request_key: object) -> Call[int]:
    """Return the request that imports outcomes from before the experiment."""
    played = [each if isinstance(each, str) else checks.integer("arm", each, least=0) for each in arms]
    given = None if contexts is None else checks.array("contexts", contexts, error=ContextError).tolist()
    body = {"arms": played, "rewards": checks.array("rewards", rewards, error=RewardError).tolist(), "contexts": given}
    made_here = request_key is None

    def parse(found: Any, unclear: bool) -> int:
        added = int(found["added"])
        # only this call knows the key: where it was used before, an earlier attempt has added everything
        return len(played) if added == 0 and unclear and made_here else added

    return Call(
        method="POST",
        path=experiment_path(name, "history"),
        body=body,
        headers=key_header(request_key),
        parse=parse,
    )


def change_status(name: str, what: str, reason: object) -> Call[bool]:
    """Return the request for "pause" or "resume"."""
    return Call(
        method="POST",
        path=experiment_path(name, what),
        body={"reason": _optional(reason)},
        headers=key_header(),
        parse=lambda found, _: bool(found["changed"]),
    )


def add_arm(name: str, arm: object, reason: object) -> Call[bool]:
    """Return the request that adds an arm."""
    return Call(
        method="POST",
        path=experiment_path(name, "arms"),
        body={"name": check_text("the name of an arm", arm), "reason": _optional(reason)},
        headers=key_header(),
        parse=lambda found, _: bool(found["changed"]),
    )


def drop_arm(name: str, arm: object, arms: Sequence[str], reason: object) -> Call[bool]:
    """Return the request that drops an arm, which is given by its name or by its index in ``arms``."""
    dropped = arm if isinstance(arm, str) else arms[arm_index(tuple(arms), arm)]
    return Call(
        method="POST",
        path=experiment_path(name, "arms", "drop"),
        body={"arm": dropped, "reason": _optional(reason)},
        headers=key_header(),
        parse=lambda found, _: bool(found["changed"]),
    )


def status(name: str) -> Call[dict[str, Any]]:
    """Return the request for the status of an experiment, which every key may see."""
    return Call(method="GET", path=experiment_path(name), headers=FRESH, parse=lambda found, _: _named(found))


def _named(found: dict[str, Any]) -> dict[str, Any]:
    assert isinstance(found["name"], str)
    return {**found, "created_at": parse_time(found["created_at"]).isoformat()}


def looks(name: str) -> Call[Sequence[LookRecord]]:
    """Return the request for the looks of an experiment."""
    return Call(method="GET", path=experiment_path(name), headers=FRESH, parse=lambda found, _: parsing.looks(found))


def summary(name: str) -> Call[dict[str, Any]]:
    """Return the request for the summary of an experiment."""
    path = experiment_path(name, "summary")
    return Call(method="GET", path=path, headers=FRESH, parse=lambda found, _: parsing.summary(found))


def posterior(name: str, context: Any) -> Call["pd.DataFrame"]:
    """Return the request for the posterior of every arm."""
    query = {} if context is None else {"context": ",".join(repr(each) for each in _context(context))}
    return Call(
        method="GET",
        path=experiment_path(name, "posterior"),
        query=query,
        headers=FRESH,
        parse=lambda found, _: parsing.posterior(found, context is not None),
    )


def explain(name: str, decision: object) -> Call[Explanation]:
    """Return the request for the explanation of a decision."""
    path = experiment_path(name, "decisions", check_id(decision))
    return Call(method="GET", path=path, parse=lambda found, _: parsing.explanation(found, name))


def replay(name: str) -> Call[Replay | None]:
    """Return the request for a replay; its result is None while the replay is running."""
    path = experiment_path(name, "replay")
    return Call(method="GET", path=path, parse=lambda found, _: parsing.replay(found))


def decision_page(name: str, after: int, limit: int, waiting: bool) -> Call[list[dict[str, Any]]]:
    """Return the request for a page of decisions."""
    return Call(
        method="GET",
        path=experiment_path(name, "export.jsonl"),
        query={"after": after, "limit": limit, "status": "waiting" if waiting else "all"},
        text=True,
        parse=lambda found, _: parsing.decision_rows(found),
    )


def audit_page(name: str, after: str | None, limit: int) -> Call[tuple[list[dict[str, Any]], str | None]]:
    """Return the request for a page of the audit trail, and the cursor of the next page."""
    query: dict[str, str | int] = {"limit": limit} if after is None else {"after": after, "limit": limit}
    path = experiment_path(name, "audit")
    return Call(method="GET", path=path, query=query, parse=lambda found, _: (found["entries"], found["following"]))
