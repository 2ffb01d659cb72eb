"""Asking: a decision is made and written in one transaction, or found where it was asked before."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import ConflictError, ContextError, PausedError
from doublesampling.live.book import Book
from doublesampling.live.deciding import decide_at
from doublesampling.live.design import check_text
from doublesampling.live.memory import Known
from doublesampling.live.records import Receipt, pack, receipt_from_row
from doublesampling.live.schema import decisions

_CHUNK = 500  # keys in one query: databases limit the length of a list


@dataclass(frozen=True)
class Request:
    """One wish for a decision."""

    unit: str | None
    context: Any
    request_key: str | None


def make_request(unit: object, context: Any, request_key: object) -> Request:
    """A request whose words both databases can keep."""
    return Request(
        None if unit is None else check_text("unit", unit),
        context,
        None if request_key is None else check_text("request_key", request_key),
    )


def ask(book: Book, requests: Sequence[Request], actor: str | None) -> list[Receipt]:
    """A receipt for each request, in order; all are written, or none."""
    signed = book.signed(actor)

    def work(connection: Connection) -> list[Receipt]:
        with book.memory.lock:
            found = _asked_before(book, connection, requests)
            known = book.memory.look(connection)
        if all(_match(book, found, r) is not None for r in requests):
            return [_repeated(book, _match(book, found, r), known.arms) for r in requests]
        return _decide(book, connection, requests, found, known, signed)

    receipts = book.store.attempt(work)
    book.memory.keep()
    return receipts


def _asked_before(book: Book, connection: Connection, requests: Sequence[Request]) -> dict[tuple[str, str], Any]:
    """Rows that already answer some of the requests, by ("key", request_key) and ("unit", unit)."""
    found: dict[tuple[str, str], Any] = {}
    keys = [r.request_key for r in requests if r.request_key is not None]
    units = [r.unit for r in requests if r.unit is not None] if book.design.units == "once" else []
    for kind, column, values in (("key", decisions.c.request_key, keys), ("unit", decisions.c.unit_once, units)):
        for start in range(0, len(values), _CHUNK):
            query = sa.select(decisions).where(
                decisions.c.experiment == book.id, column.in_(values[start : start + _CHUNK])
            )
            found |= {(kind, getattr(row, column.name)): row for row in connection.execute(query)}
    return found


def _match(book: Book, found: dict[tuple[str, str], Any], request: Request) -> Any:
    """The row that answers a request, or None."""
    if request.request_key is not None and (row := found.get(("key", request.request_key))) is not None:
        if request.unit is not None and row.unit != request.unit:
            raise ConflictError(
                f"request_key {request.request_key!r} was used for unit {row.unit!r}, now it comes with "
                f"{request.unit!r}. Use a new key for a new request."
            )
        if request.context is not None and row.context != _written(request.context):
            raise ConflictError(f"request_key {request.request_key!r} was used with another context. Use a new key.")
        return row
    if request.unit is not None and book.design.units == "once":
        return found.get(("unit", request.unit))
    return None


def _written(context: Any) -> str:
    """A context as it is stored."""
    return json.dumps(checks.array("context", context, error=ContextError).tolist())


def _repeated(book: Book, row: Any, arms: tuple[str, ...]) -> Receipt:
    return receipt_from_row(row, book.name, arms, book.design.seed, repeated=True)


def _decide(
    book: Book,
    connection: Connection,
    requests: Sequence[Request],
    found: dict[tuple[str, str], Any],
    known: Known,
    signed: dict[str, Any],
) -> list[Receipt]:
    """Decide what was not asked before, all from the same knowledge, and write it down."""
    if known.paused:
        raise PausedError(f"Experiment {book.name!r} is paused: no new decisions. resume() it first; tell still works.")
    open_ = [r for r in requests if _match(book, found, r) is None]
    numbers = book.store.draw_numbers(connection, book.id, len(open_))
    xid = book.store.draw_xid(connection, book.id)
    rows: list[dict[str, Any]] = []
    receipts = []
    for request in requests:
        before = _match(book, found, request)
        if before is None:
            row = _one_row(book, request, known, numbers[len(rows)], len(rows)) | signed | {"xid": xid}
            rows.append(row)
            before = SimpleNamespace(**row)
            if request.request_key is not None:
                found["key", request.request_key] = before
            if row["unit_once"] is not None:
                found["unit", row["unit_once"]] = before
            receipts.append(receipt_from_row(before, book.name, known.arms, book.design.seed))
        else:
            receipts.append(_repeated(book, before, known.arms))
    connection.execute(sa.insert(decisions), rows)
    return receipts


def _one_row(book: Book, request: Request, known: Known, number: int, position: int) -> dict[str, Any]:
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
        "request_key": request.request_key,
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
