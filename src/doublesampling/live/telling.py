"""Telling: outcomes are added once, superseded by amendments, and never overwritten."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import (
    ConflictError,
    DoubleSamplingError,
    NotFoundError,
    OtherExperimentError,
    StorageError,
    VoidedError,
)
from doublesampling.live.book import Book
from doublesampling.live.design import check_reason
from doublesampling.live.records import Outcome
from doublesampling.live.schema import decisions, experiments, outcomes

_CHUNK = 500


@dataclass(frozen=True)
class Told:
    """One outcome that somebody tells.

    With ``keep``, an outcome that is already there stays whatever is told now, without a conflict: who is blind to
    results must not learn from the answer whether the stored value is another one.
    """

    decision: str
    reward: float
    imputed: bool = False
    reason: str | None = None
    actor: str | None = None
    keep: bool = False


def make_told(
    book: Book,
    decision: object,
    reward: object,
    *,
    imputed: bool,
    reason: object,
    actor: str | None,
    keep: bool = False,
) -> Told:
    """Return an outcome that the experiment's belief can absorb."""
    why = None if reason is None else check_reason(reason)
    return Told(check_id(decision), book.design.belief.check_reward(reward), imputed, why, actor, keep)


def tell(book: Book, told: Sequence[Told]) -> list[Outcome]:
    """Add outcomes, all of them or none; what is already there is left as it is."""
    return _tell(book, told, each=False)


def tell_each(book: Book, told: Sequence[Told]) -> list[Outcome | DoubleSamplingError]:
    """Add outcomes in one transaction; one that is refused leaves the others alone, and its error is returned."""
    return _tell(book, told, each=True)


def _tell(book: Book, told: Sequence[Told], each: bool) -> list[Any]:
    def work(connection: Connection) -> list[Any]:
        log = DecisionLog(book, connection, [item.decision for item in told])
        new: list[dict[str, Any]] = []
        answers: list[Any] = []
        for item in told:
            try:
                answers.append(_tell_one(book, log, item, new))
            except DoubleSamplingError as problem:
                if not each or isinstance(problem, StorageError):
                    raise
                answers.append(problem)
        insert_outcomes(book, connection, new)
        return answers

    return book.store.attempt(work)


def _tell_one(book: Book, log: "DecisionLog", item: Told, new: list[dict[str, Any]]) -> Outcome:
    asked, earlier = log.open(item.decision)
    standing = _standing(_since_withdrawal(earlier), item)
    if standing is not None:
        return outcome_from_row(standing, repeated=True)
    kind = "imputed" if item.imputed else "told"
    row = revision_row(asked, earlier, item.reward, kind, item.reason) | book.signed(item.actor)
    new.append(row)
    earlier.append(row)
    return outcome_from_row(row)


def amend(book: Book, decision: object, reward: object, reason: object, actor: str | None) -> Outcome:
    """Supersede the outcome of a decision, and say why."""
    signed = book.signed(actor)
    which, value = check_id(decision), book.design.belief.check_reward(reward)
    why = check_reason(reason)

    def work(connection: Connection) -> Outcome:
        asked, earlier = DecisionLog(book, connection, [which]).open(which)
        if not _since_withdrawal(earlier):
            raise ConflictError(f"Decision {which!r} has no outcome to amend. Use tell for the first one.")
        last = earlier[-1]
        if (last["kind"], last["reward"], last["reason"]) == ("amended", value, why):
            return outcome_from_row(last, repeated=True)  # the same call again, whose answer was lost on the way
        row = revision_row(asked, earlier, value, "amended", why) | signed | {"imputed": last["imputed"]}
        insert_outcomes(book, connection, [row])
        return outcome_from_row(row)

    return book.store.attempt(work)


def void(book: Book, decision: object, reason: object, actor: str | None) -> Outcome:
    """Mark a decision as not carried out: it stays in the log and counts for nothing, nor does its outcome."""
    return _retract(book, "voided", decision, reason, actor)


def withdraw(book: Book, decision: object, reason: object, actor: str | None) -> Outcome:
    """Take an outcome back: it stays in the log, and the decision waits for its outcome again."""
    return _retract(book, "withdrawn", decision, reason, actor)


def _retract(book: Book, kind: str, decision: object, reason: object, actor: str | None) -> Outcome:
    signed = book.signed(actor)
    which, why = check_id(decision), check_reason(reason)

    def work(connection: Connection) -> Outcome:
        log = DecisionLog(book, connection, [which])
        asked, earlier = log.find(which)
        if earlier and earlier[-1]["kind"] == kind:
            return outcome_from_row(earlier[-1], repeated=True)
        if kind == "withdrawn":
            log.open(which)
            if not _since_withdrawal(earlier):
                raise ConflictError(f"Decision {which!r} has no outcome to withdraw. Nothing was stored.")
        row = revision_row(asked, earlier, None, kind, why) | signed
        insert_outcomes(book, connection, [row])
        return outcome_from_row(row)

    return book.store.attempt(work)


def check_id(decision: object) -> str:
    """Return the id of a decision as ``ask`` returned it."""
    if not isinstance(decision, str) or not decision:
        raise NotFoundError(
            f"A decision is named by its id, a text such as ask returned, got {checks.shown(decision)}."
        )
    return decision


class DecisionLog:
    """Some decisions and the revisions of their outcomes, in order, as one transaction sees them."""

    def __init__(self, book: Book, connection: Connection, ids: Sequence[str]) -> None:
        book.store.incarnation(connection)
        self._book, self._connection = book, connection
        self._asked: dict[str, Any] = {}
        self._revisions: dict[str, list[Any]] = {}
        for start in range(0, len(ids), _CHUNK):
            some = list(ids[start : start + _CHUNK])
            columns = (decisions.c.id, decisions.c.experiment, decisions.c.arm, decisions.c.context)
            for row in connection.execute(sa.select(*columns).where(decisions.c.id.in_(some))):
                self._asked[row.id] = row
            query = sa.select(outcomes).where(outcomes.c.decision.in_(some)).order_by(outcomes.c.revision)
            for found in connection.execute(query).mappings():
                self._revisions.setdefault(found["decision"], []).append(dict(found))

    def find(self, decision: str) -> tuple[Any, list[Any]]:
        """Return a decision of this experiment and its revisions."""
        if decision not in self._asked:
            raise NotFoundError(
                f"No decision has the id {checks.shown(decision)}. Use d.id of what ask returned; pending() lists them."
            )
        if self._asked[decision].experiment != self._book.id:
            query = sa.select(experiments.c.name).where(experiments.c.id == self._asked[decision].experiment)
            other = self._connection.execute(query).scalar()
            raise OtherExperimentError(
                f"Decision {decision!r} belongs to experiment {other!r}, not to {self._book.name!r}. Load that one."
            )
        return self._asked[decision], self._revisions.setdefault(decision, [])

    def open(self, decision: str) -> tuple[Any, list[Any]]:
        """Return the same, for a decision that was not voided."""
        asked, earlier = self.find(decision)
        if earlier and earlier[-1]["kind"] == "voided":
            raise VoidedError(
                f"Decision {decision!r} was voided ({earlier[-1]['reason']}), so it has no outcome. Nothing was stored."
            )
        return asked, earlier


def _since_withdrawal(earlier: list[Any]) -> list[Any]:
    """The revisions that count: those after the last withdrawal."""
    gone = [i for i, row in enumerate(earlier) if row["kind"] == "withdrawn"]
    return earlier[gone[-1] + 1 :] if gone else earlier


def _standing(earlier: list[Any], item: Told) -> Any:
    """The outcome that makes this tell a repetition; None where it is news; a conflict where it contradicts."""
    real = [row for row in earlier if not row["imputed"]]
    against = real or (earlier if item.imputed else [])
    if not against:
        return None
    # the first value, which a repeated tell carries, or the one that an amendment made of it
    if item.keep or item.reward in (against[0]["reward"], against[-1]["reward"]):
        return against[-1]
    raise ConflictError(
        f"Decision {item.decision!r} already has the outcome {against[-1]['reward']:g}; {item.reward:g} was told now "
        f"and not stored. If it was wrong, amend({item.decision!r}, {item.reward:g}, reason=...) supersedes it."
    )


def revision_row(asked: Any, earlier: list[Any], reward: float | None, kind: str, reason: str | None) -> dict[str, Any]:
    """Return the next revision of a decision's outcome, without its signature and transaction."""
    return {
        "experiment": asked.experiment,
        "decision": asked.id,
        "revision": len(earlier) + 1,
        "kind": kind,
        "imputed": kind == "imputed",
        "arm": asked.arm,
        "reward": reward,
        "previous": earlier[-1]["reward"] if earlier else None,
        "place": earlier[0]["place"] if earlier else None,  # None: this transaction's own number
        "context": asked.context,
        "reason": reason,
    }


def insert_outcomes(book: Book, connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Write revisions in one order for all, so that writers cannot deadlock."""
    if not rows:
        return
    xid = book.store.draw_xid(connection, book.id)
    written = [row | {"xid": xid, "place": xid if row["place"] is None else row["place"]} for row in rows]
    written.sort(key=lambda row: (row["decision"], row["revision"]))
    connection.execute(sa.insert(outcomes), written)


def outcome_from_row(row: Any, repeated: bool = False) -> Outcome:
    """Return a stored revision as callers get it."""
    return Outcome(
        decision=row["decision"],
        reward=row["reward"],
        kind=row["kind"],
        imputed=row["imputed"],
        revision=row["revision"],
        reason=row["reason"],
        told_at=row["at"],
        actor=row["actor"],
        repeated=repeated,
    )


def history_rows(book: Book, arms: list[int], rewards: list[float], contexts: list[Any] | None) -> list[dict[str, Any]]:
    """Return rows of outcomes from before the experiment: they have no decision, and count all the same."""
    return [
        {
            "experiment": book.id,
            "decision": None,
            "revision": 1,
            "kind": "history",
            "imputed": False,
            "arm": arm,
            "reward": reward,
            "previous": None,
            "context": None if contexts is None else json.dumps(contexts[i]),
            "reason": None,
        }
        for i, (arm, reward) in enumerate(zip(arms, rewards, strict=True))
    ]
