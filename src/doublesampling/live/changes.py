"""Changes of a running experiment: pause, resume, drop and add arms, and outcomes from the past."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import ArmError, ConflictError, NameTakenError
from doublesampling.live.book import Book
from doublesampling.live.design import check_reason, check_text, grown, normalized
from doublesampling.live.memory import Known
from doublesampling.live.schema import events, outcomes
from doublesampling.live.telling import history_rows

Plan = Callable[[Known], tuple[dict[str, Any], list[dict[str, Any]]] | None]
"""From what is known: the content of the event and outcomes that come with it, or None where nothing is to be done."""


def change(
    book: Book, kind: str, plan: Plan, actor: str | None, request_key: str | None = None, scope: str = ""
) -> bool:
    """Append an event; False where it had happened already. Events are numbered, so that they cannot cross."""
    signed = book.signed(actor)

    def work(connection: Connection) -> bool:
        with book.memory.lock:
            book.store.enter(connection)
            before = None if request_key is None else _earlier(book, connection, kind, request_key, scope)
            known = book.memory.look(connection)
        planned = plan(known)
        if planned is None:
            return False
        content, rows = planned
        if before is not None:
            if before != content:
                raise ConflictError(f"request_key {request_key!r} was used for something else. Use a new key.")
            return False
        xid = book.store.draw_xid(connection, book.id)
        event = {
            "experiment": book.id,
            "revision": known.events + 1,
            "kind": kind,
            "content": json.dumps(content, ensure_ascii=False),
            "request_key": request_key,
            "key_scope": scope,
            "xid": xid,
        }
        connection.execute(sa.insert(events).values(event | signed))
        if rows:
            connection.execute(sa.insert(outcomes), [row | signed | {"xid": xid, "place": xid} for row in rows])
        return True

    return book.store.attempt(work)


def _earlier(book: Book, connection: Connection, kind: str, request_key: str, scope: str) -> Any:
    """What an event with this key of this owner holds, or None where there is none."""
    same = (events.c.experiment == book.id, events.c.request_key == request_key, events.c.key_scope == scope)
    found = connection.execute(sa.select(events.c.kind, events.c.content).where(*same)).first()
    if found is None:
        return None
    if found.kind != kind:
        raise ConflictError(
            f"request_key {request_key!r} was used for {found.kind!r}. Use a new key for a new request."
        )
    return json.loads(found.content)


def pause(book: Book, reason: str | None, actor: str | None) -> bool:
    """No new decisions from now on."""
    content = {} if reason is None else {"reason": check_reason(reason)}
    return change(book, "pause", lambda known: None if known.paused else (content, []), actor)


def resume(book: Book, reason: str | None, actor: str | None) -> bool:
    """Decisions again."""
    content = {} if reason is None else {"reason": check_reason(reason)}
    return change(book, "resume", lambda known: (content, []) if known.paused else None, actor)


def arm_index(arms: tuple[str, ...], arm: object) -> int:
    """An arm by its name or number."""
    if isinstance(arm, str):
        forms = [normalized(name) for name in arms]
        if normalized(arm) not in forms:
            raise ArmError(f"No arm is called {arm!r}. There are {', '.join(map(repr, arms))}.")
        return forms.index(normalized(arm))
    return checks.arm_index(arm, len(arms))


def drop_arm(book: Book, arm: object, reason: str | None, actor: str | None) -> bool:
    """Give an arm no more decisions; its outcomes still count when they come."""
    why = None if reason is None else check_reason(reason)

    def plan(known: Known) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        index = arm_index(known.arms, arm)
        if index not in known.active:
            return None
        if len(known.active) <= 2:
            raise ArmError("Two arms are left, and choosing needs two. To end the experiment, pause() it.")
        return {"arm": known.arms[index], "reason": why}, []

    return change(book, "drop_arm", plan, actor)


def add_arm(book: Book, name: object, reason: str | None, actor: str | None) -> bool:
    """Add an arm, which starts at the prior."""
    arm = check_text("the name of an arm", name)
    why = None if reason is None else check_reason(reason)

    def plan(known: Known) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        if arm in known.arms:
            dropped = known.arms.index(arm) not in known.active
            was = "was dropped; what was learned of it stays under its name" if dropped else "is there already"
            raise NameTakenError(f"Arm {arm!r} {was}. Give the new arm another name.")
        grown(book.design.belief, len(known.arms) + 1).prior()
        return {"arm": arm, "reason": why}, []

    return change(book, "add_arm", plan, actor)


def add_history(
    book: Book, arms: Any, rewards: Any, contexts: Any, request_key: str | None, scope: str, actor: str | None
) -> int:
    """Add outcomes from before the experiment; return how many, 0 where the request_key was seen before."""
    added = 0

    def plan(known: Known) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        nonlocal added
        played = [arm_index(known.arms, arm) for arm in np.asarray(arms, dtype=object).tolist()]
        belief = known.belief
        belief.update_batch(belief.prior(), played, rewards, contexts)  # refuses all that cannot be absorbed
        if not played:
            return None
        paid = np.asarray(rewards, dtype=np.float64).tolist()
        given = None if contexts is None else np.asarray(contexts, dtype=np.float64).tolist()
        added = len(played)
        digest = hashlib.sha256(json.dumps([played, paid, given]).encode()).hexdigest()
        return {"count": added, "digest": digest}, history_rows(book, played, paid, given)

    return added if change(book, "history", plan, actor, request_key, scope) else 0
