"""Ask: make a decision and store it in one transaction, or return the decision that an earlier request got."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import Connection

from doublesampling.assignment import Past, after_decision
from doublesampling.errors import (
    ConflictError,
    DoubleSamplingError,
    PausedError,
    StoppedError,
    StorageError,
    VoidedError,
)
from doublesampling.live.contexts import context_to_json
from doublesampling.live.deciding import decide_next
from doublesampling.live.design import normalized
from doublesampling.live.looking import LookDueError, is_due, look_where_due
from doublesampling.live.queries.idempotency import EarlierDecisions, find_earlier
from doublesampling.live.records import Receipt, pack, receipt_from_row, unpack
from doublesampling.live.requests import Request
from doublesampling.live.session import Session
from doublesampling.live.state import ExperimentState
from doublesampling.live.stores.schema import decisions


def ask(session: Session, requests: Sequence[Request]) -> list[Receipt]:
    """Return a receipt for each request, in order; all decisions are stored, or none."""
    return _ask(session, requests, each=False)


def ask_each(session: Session, requests: Sequence[Request]) -> list[Receipt | DoubleSamplingError]:
    """Return a receipt or an error for each request; those without an error are stored together."""
    return _ask(session, requests, each=True)


def _ask(session: Session, requests: Sequence[Request], each: bool) -> list[Any]:
    def work(connection: Connection) -> list[Any]:
        with session.cache.lock:
            session.store.enter(connection)
            earlier = find_earlier(session, connection, requests)
            current = session.cache.read(connection)
        if is_due(session.design.stopping, current.looks, current.outcomes):
            raise LookDueError
        return _AskTransaction(session, current, earlier, each).answer(connection, requests)

    answers = None
    alone = session.id if session.design.in_order or session.design.participants is not None else None
    while answers is None:  # a tell may make another look due
        try:
            answers = session.store.run_transaction(work, alone=alone)
        except LookDueError:
            look_where_due(session)
    session.cache.save_checkpoint()
    return answers


def _match(session: Session, earlier: EarlierDecisions, request: Request) -> Any:
    """Return the stored decision that answers a request, or None."""
    row = earlier.by_key(request)
    if row is not None:
        _check_same(session, request, row)
        if row.id in earlier.voided:
            raise VoidedError(
                f"request_key {request.request_key!r} was used for decision {row.id!r}, which was voided: do not carry "
                "it out. Use a new key for a new decision."
            )
        return row
    if request.unit is None or session.design.units != "once":
        return None
    row = earlier.by_unit(request.unit)
    return None if row is None or row.id in earlier.voided else row


def _check_same(session: Session, request: Request, row: Any) -> None:
    """Raise ConflictError where a key is used again with another unit or context."""
    if request.unit is not None and (row.unit is None or normalized(row.unit) != request.unit):
        raise ConflictError(
            f"request_key {request.request_key!r} was used for unit {row.unit!r}, now it comes with "
            f"{request.unit!r}. Use a new key for a new request."
        )
    known = None if request.context is None else context_to_json(session.design.belief, request.context)
    if known is not None and row.context != known:
        raise ConflictError(f"request_key {request.request_key!r} was used with another context. Use a new key.")


@dataclass
class _AskTransaction:
    """Answers to some requests, all from the same state."""

    session: Session
    current: ExperimentState
    earlier: EarlierDecisions
    each: bool
    """Whether a refused request leaves the others unaffected."""
    past: Past | None = field(init=False)

    def __post_init__(self) -> None:
        self.past = self.current.past

    def answer(self, connection: Connection, requests: Sequence[Request]) -> list[Any]:
        """Return the stored decisions of repeated requests; decide and store the rest."""
        answers: list[Any] = [self._guarded(self._repeat, request) for request in requests]
        open_ = [i for i, answer in enumerate(answers) if answer is None]
        if not open_:
            return answers
        numbers = self._numbers(connection, len(open_))
        xid = self.session.store.draw_xid(connection, self.session.id)
        rows: list[dict[str, Any]] = []
        for i in open_:
            answers[i] = self._guarded(self._decide, requests[i], numbers[len(rows)], xid, rows)
        if rows:
            connection.execute(insert(decisions), rows)
        return answers

    def _numbers(self, connection: Connection, count: int) -> list[int]:
        """Return numbers for new decisions. Where decisions depend on all earlier ones, no two can follow the same."""
        if self.past is None:
            return self.session.store.draw_numbers(connection, self.session.id, count)
        return list(range(self.past.made + 1, self.past.made + 1 + count))

    def _guarded(self, work: Any, *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except DoubleSamplingError as problem:
            if not self.each or isinstance(problem, StorageError):
                raise
            return problem

    def _repeat(self, request: Request) -> Receipt | None:
        """Return the decision of an earlier request, or None where a new one must be made."""
        row = _match(self.session, self.earlier, request)
        if row is None:
            self._check_open(0)
            if self.current.paused:
                raise PausedError(
                    f"Experiment {self.session.name!r} is paused: no new decisions. resume() it first; tell still "
                    "works."
                )
            return None
        return self._receipt(row, repeated=True)

    def _check_open(self, more: int) -> None:
        """Raise StoppedError where the experiment has ended, or has all its participants with ``more`` decisions."""
        name, most = self.session.name, self.session.design.participants
        if self.current.stopped is not None:
            raise StoppedError(
                f"Experiment {name!r} was stopped by its stopping rule: no new decisions; tell still works. "
                f"{self.current.stopped}"
            )
        if most is not None and self.current.decisions + more >= most:
            raise StoppedError(
                f"Experiment {name!r} has at most {most} participants: no more decisions can be made; tell still works."
            )

    def _decide(self, request: Request, number: int, xid: int, rows: list[dict[str, Any]]) -> Receipt:
        """Return a new decision, unless an earlier item of this transaction was the same request."""
        before = _match(self.session, self.earlier, request)
        if before is not None:
            return self._receipt(before, repeated=True)
        self._check_open(len(rows))
        row = self._row(request, number, len(rows)) | self.session.provenance(request.actor) | {"xid": xid}
        rows.append(row)
        if self.past is not None:
            self.past = after_decision(self.past, row["arm"], unpack(row["propensities"]))
        stored = SimpleNamespace(**row)
        self.earlier.add(stored)
        return self._receipt(stored, repeated=False)

    def _receipt(self, row: Any, repeated: bool) -> Receipt:
        return receipt_from_row(row, self.session.name, self.current.arms, self.session.design.seed, repeated=repeated)

    def _row(self, request: Request, number: int, position: int) -> dict[str, Any]:
        session, current = self.session, self.current
        time = current.decisions + 1 + position
        context = session.design.check_context(request.context)
        made = decide_next(session.design, current.basis, context, self.past, number=number, time=time)
        once = session.design.units == "once"
        return {
            "id": secrets.token_hex(10),
            "experiment": session.id,
            "number": number,
            "time": time,
            "position": position,
            "unit": request.unit,
            "unit_once": request.unit if once else None,
            "unit_round": self.earlier.next_round(request.unit) if once else 0,
            "request_key": request.request_key,
            "key_scope": request.scope,
            "key_part": request.part,
            "context": None if request.context is None else context_to_json(session.design.belief, request.context),
            "arm": made.arm,
            "propensities": pack(made.propensities),
            "probability_optimal": pack(made.probability_optimal),
            "candidates": made.candidates,
            "votes": pack(made.votes),
            "observations": current.belief_state.observations,
            "digest": current.digest,
            "snapshot": str(current.snapshot),
        }
