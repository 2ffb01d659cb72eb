"""Asking: a decision is made and written in one transaction, or found where it was asked before."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import (
    ConflictError,
    ContextError,
    DoubleSamplingError,
    PausedError,
    SettingError,
    StorageError,
    VoidedError,
)
from doublesampling.live.asked_before import Earlier, find_earlier
from doublesampling.live.book import Book
from doublesampling.live.deciding import decide_at
from doublesampling.live.design import check_text, normalized
from doublesampling.live.memory import Known
from doublesampling.live.records import Receipt, pack, receipt_from_row
from doublesampling.live.schema import decisions


@dataclass(frozen=True)
class Request:
    """One request for a decision."""

    unit: str | None
    context: Any
    request_key: str | None
    scope: str = ""
    """Who owns the key; "" is the common scope of plain Python."""
    part: int = 0
    """0 for ``ask``; the items of ``ask_many``, which share a key, count from 1."""
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
    """Return a request whose texts both databases can keep."""
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


def ask(book: Book, requests: Sequence[Request]) -> list[Receipt]:
    """Return a receipt for each request, in order; all are written, or none."""
    return _ask(book, requests, each=False)


def ask_each(book: Book, requests: Sequence[Request]) -> list[Receipt | DoubleSamplingError]:
    """Return a receipt or an error for each request: those that can be answered are written together."""
    return _ask(book, requests, each=True)


def _ask(book: Book, requests: Sequence[Request], each: bool) -> list[Any]:
    def work(connection: Connection) -> list[Any]:
        with book.memory.lock:
            book.store.enter(connection)
            earlier = find_earlier(book, connection, requests)
            known = book.memory.look(connection)
        return _Answering(book, known, earlier, each).answer(connection, requests)

    answers = book.store.attempt(work)
    book.memory.keep()
    return answers


def _match(book: Book, earlier: Earlier, request: Request) -> Any:
    """The row that answers a request, or None."""
    row = earlier.by_key(request)
    if row is not None:
        _check_same(request, row)
        if row.id in earlier.voided:
            raise VoidedError(
                f"request_key {request.request_key!r} was used for decision {row.id!r}, which was voided: do not carry "
                "it out. Use a new key for a new decision."
            )
        return row
    if request.unit is None or book.design.units != "once":
        return None
    row = earlier.by_unit(request.unit)
    return None if row is None or row.id in earlier.voided else row


def _check_same(request: Request, row: Any) -> None:
    """Refuse a key that comes with another unit or context than before."""
    if request.unit is not None and (row.unit is None or normalized(row.unit) != request.unit):
        raise ConflictError(
            f"request_key {request.request_key!r} was used for unit {row.unit!r}, now it comes with "
            f"{request.unit!r}. Use a new key for a new request."
        )
    if request.context is not None and row.context != _written(request.context):
        raise ConflictError(f"request_key {request.request_key!r} was used with another context. Use a new key.")


def _written(context: Any) -> str:
    """A context as it is stored."""
    return json.dumps(checks.array("context", context, error=ContextError).tolist())


@dataclass
class _Answering:
    """Answers to some requests, all from the same knowledge."""

    book: Book
    known: Known
    earlier: Earlier
    each: bool
    """Whether one that is refused leaves the others alone."""

    def answer(self, connection: Connection, requests: Sequence[Request]) -> list[Any]:
        """Return what was asked before; decide the rest and write it."""
        answers: list[Any] = [self._guarded(self._repeat, request) for request in requests]
        open_ = [i for i, answer in enumerate(answers) if answer is None]
        if not open_:
            return answers
        numbers = self.book.store.draw_numbers(connection, self.book.id, len(open_))
        xid = self.book.store.draw_xid(connection, self.book.id)
        rows: list[dict[str, Any]] = []
        for i in open_:
            answers[i] = self._guarded(self._decide, requests[i], numbers[len(rows)], xid, rows)
        if rows:
            connection.execute(insert(decisions), rows)
        return answers

    def _guarded(self, work: Any, *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except DoubleSamplingError as problem:
            if not self.each or isinstance(problem, StorageError):
                raise
            return problem

    def _repeat(self, request: Request) -> Receipt | None:
        """The decision that was asked before, or None where one is to be made."""
        row = _match(self.book, self.earlier, request)
        if row is None:
            if self.known.paused:
                raise PausedError(
                    f"Experiment {self.book.name!r} is paused: no new decisions. resume() it first; tell still works."
                )
            return None
        return self._receipt(row, repeated=True)

    def _decide(self, request: Request, number: int, xid: int, rows: list[dict[str, Any]]) -> Receipt:
        """A new decision, unless an earlier item of this very group was the same request."""
        before = _match(self.book, self.earlier, request)
        if before is not None:
            return self._receipt(before, repeated=True)
        row = self._row(request, number, len(rows)) | self.book.signed(request.actor) | {"xid": xid}
        rows.append(row)
        stored = SimpleNamespace(**row)
        self.earlier.add(stored)
        return self._receipt(stored, repeated=False)

    def _receipt(self, row: Any, repeated: bool) -> Receipt:
        return receipt_from_row(row, self.book.name, self.known.arms, self.book.design.seed, repeated=repeated)

    def _row(self, request: Request, number: int, position: int) -> dict[str, Any]:
        book, known = self.book, self.known
        time = known.decisions + 1 + position
        made = decide_at(
            book.design.policy,
            known.belief,
            known.state,
            known.active,
            request.context,
            seed=book.design.seed,
            number=number,
            time=time,
        )
        return {
            "id": secrets.token_hex(10),
            "experiment": book.id,
            "number": number,
            "time": time,
            "position": position,
            "unit": request.unit,
            "unit_once": request.unit if book.design.units == "once" else None,
            "unit_round": self.earlier.rounds(request.unit) if book.design.units == "once" else 0,
            "request_key": request.request_key,
            "key_scope": request.scope,
            "key_part": request.part,
            "context": None if request.context is None else _written(request.context),
            "arm": made.arm,
            "propensities": pack(made.propensities),
            "probability_optimal": pack(made.probability_optimal),
            "candidates": made.candidates,
            "votes": pack(made.votes),
            "observations": known.state.observations,
            "digest": known.digest,
            "snapshot": str(known.snapshot),
        }
