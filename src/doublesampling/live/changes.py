"""Change a running experiment: pause, resume, drop and add arms, and import outcomes from before it."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import ArmError, ConflictError, NameTakenError
from doublesampling.live.contexts import plain_contexts
from doublesampling.live.design import check_reason, check_text, normalized, resize_belief
from doublesampling.live.looking import control_now
from doublesampling.live.own_classes import own_code
from doublesampling.live.queries.idempotency import find_earlier_event
from doublesampling.live.session import Session
from doublesampling.live.state import ExperimentState
from doublesampling.live.stores.schema import outcomes
from doublesampling.live.telling import history_rows

Change = tuple[dict[str, Any], list[dict[str, Any]]]
"""The content of an event, and the outcome rows to insert with it."""
Plan = Callable[[ExperimentState], Change | None]
"""Return the change to write from the current state, or None where nothing needs to change."""


@dataclass(frozen=True)
class ChangeRequest:
    """Who wants a change, and the idempotency key of the request; the same key changes an experiment only once."""

    actor: str | None = None
    request_key: str | None = None
    scope: str = ""


def change(
    session: Session,
    kind: str,
    plan: Plan,
    request: ChangeRequest,
    content_of: Callable[[ExperimentState], dict[str, Any]] | None = None,
) -> bool:
    """Append an event; return False where nothing had to change.

    Where the key of the request was used before, nothing is written: with ``content_of``, which returns what the event
    would say, the answer is True as it was then; without it, False.
    """
    actor, request_key, scope = request.actor, request.request_key, request.scope

    def work(connection: Connection) -> bool:
        with session.cache.lock:
            session.store.enter(connection)
            before = None
            if request_key is not None:
                before = find_earlier_event(session, connection, kind, request_key, scope)
            current = session.cache.read(connection)
        if before is not None and content_of is not None:
            _check_same(request, before, content_of(current))
            return True
        planned = plan(current)
        if planned is None:
            return False
        content, rows = planned
        if before is not None:
            _check_same(request, before, content)
            return False
        xid = session.write_event(connection, current, kind, content, (request_key, scope), actor)
        if rows:
            signed = session.provenance(actor)  # not before the event that they belong to
            connection.execute(sa.insert(outcomes), [row | signed | {"xid": xid, "place": xid} for row in rows])
        return True

    return session.store.run_transaction(work)


def _check_same(request: ChangeRequest, before: dict[str, Any], content: dict[str, Any]) -> None:
    if before != content:
        raise ConflictError(f"request_key {request.request_key!r} was used for something else. Use a new key.")


def pause(session: Session, reason: str | None, request: ChangeRequest) -> bool:
    """Pause the experiment; return False where it was paused already."""
    return _set_paused(session, "pause", reason, request)


def resume(session: Session, reason: str | None, request: ChangeRequest) -> bool:
    """Resume a paused experiment; return False where it was not paused."""
    return _set_paused(session, "resume", reason, request)


def _set_paused(session: Session, kind: str, reason: str | None, request: ChangeRequest) -> bool:
    content = {} if reason is None else {"reason": check_reason(reason)}

    def plan(current: ExperimentState) -> Change | None:
        return None if current.paused == (kind == "pause") else (content, [])

    return change(session, kind, plan, request, lambda _: content)


def arm_index(arms: tuple[str, ...], arm: object) -> int:
    """Return the index of an arm that is given by its name or index."""
    if isinstance(arm, str):
        forms = [normalized(name) for name in arms]
        if normalized(arm) not in forms:
            raise ArmError(f"No arm is called {arm!r}. There are {', '.join(map(repr, arms))}.")
        return forms.index(normalized(arm))
    return checks.arm_index(arm, len(arms))


def drop_arm(session: Session, arm: object, reason: str | None, request: ChangeRequest) -> bool:
    """Stop decisions for an arm; outcomes of its earlier decisions still count. Return False where it was dropped."""
    why = None if reason is None else check_reason(reason)

    def content(current: ExperimentState) -> dict[str, Any]:
        return {"arm": current.arms[arm_index(current.arms, arm)], "reason": why}

    def plan(current: ExperimentState) -> Change | None:
        index = arm_index(current.arms, arm)
        if index not in current.active:
            return None
        rule = session.design.stopping
        if rule is not None and control_now(rule, current.arms, current.looks)[0] == index:
            raise ArmError(f"{current.arms[index]!r} is the control of the stopping rule, which needs it.")
        if len(current.active) <= 2:
            raise ArmError("Two arms are left, and a decision needs two. To end the experiment, pause() it.")
        return content(current), []

    return change(session, "drop_arm", plan, request, content)


def add_arm(session: Session, name: object, reason: str | None, request: ChangeRequest) -> bool:
    """Add an arm, which starts at the prior."""
    arm = check_text("the name of an arm", name)
    content = {"arm": arm, "reason": None if reason is None else check_reason(reason)}

    def plan(current: ExperimentState) -> Change | None:
        if arm in current.arms:
            dropped = current.arms.index(arm) not in current.active
            was = "was dropped, and its outcomes stay under its name" if dropped else "exists already"
            raise NameTakenError(f"Arm {arm!r} {was}. Give the new arm another name.")
        session.design.check_available()
        belief = resize_belief(session.design.belief, len(current.arms) + 1)
        with own_code(belief):
            belief.prior()
        if session.design.allocation is not None:
            active = [*current.active, len(current.arms)]
            session.design.allocation.check_active((*current.arms, arm), active)
        return content, []

    return change(session, "add_arm", plan, request, lambda _: content)


def add_history(session: Session, arms: Any, rewards: Any, contexts: Any, request: ChangeRequest) -> int:
    """Import outcomes from before the experiment; return how many, 0 where the request_key was used before."""
    added = 0

    def plan(current: ExperimentState) -> Change | None:
        nonlocal added
        played = [arm_index(current.arms, arm) for arm in np.asarray(arms, dtype=object).tolist()]
        belief = current.belief
        with own_code(belief):
            belief.update_batch(belief.prior(), played, rewards, contexts)  # raises on any outcome the belief refuses
        if not played:
            return None
        paid = np.asarray(rewards, dtype=np.float64).tolist()
        given = None if contexts is None else plain_contexts(belief, contexts)
        added = len(played)
        digest = hashlib.sha256(json.dumps([played, paid, given]).encode()).hexdigest()
        return {"count": added, "digest": digest}, history_rows(session, played, paid, given)

    return added if change(session, "history", plan, request) else 0
