"""Telling: outcomes are added once, superseded by amendments, and never overwritten."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import ConflictError, NotFoundError, OtherExperimentError
from doublesampling.live.book import Book
from doublesampling.live.design import check_text
from doublesampling.live.records import Outcome
from doublesampling.live.schema import decisions, experiments, outcomes

_CHUNK = 500


def tell(
    book: Book,
    told: Sequence[tuple[object, object]],
    imputed: bool,
    reason: str | None,
    actor: str | None,
    keep: bool = False,
) -> list[Outcome]:
    """Add outcomes, all of them or none; what is already there is left as it is.

    With ``keep``, an outcome that is already there stays whatever is told now, without a conflict: who is blind to
    results must not learn from an answer whether the stored value is another one.
    """
    signed = book.signed(actor)
    wanted = [(_check_id(decision), book.design.belief.check_reward(reward)) for decision, reward in told]

    def work(connection: Connection) -> list[Outcome]:
        asked, revisions = _find(book, connection, [decision for decision, _ in wanted])
        new, answers = [], []
        for decision, reward in wanted:
            earlier = revisions.setdefault(decision, [])
            standing = _standing(earlier, reward, imputed, decision, keep)
            if standing is None:
                row = _row(asked[decision], earlier, reward, "imputed" if imputed else "told", imputed, reason) | signed
                new.append(row)
                earlier.append(row)
                answers.append(_outcome(row))
            else:
                answers.append(_outcome(standing, repeated=True))
        _insert(book, connection, new)
        return answers

    return book.store.attempt(work)


def amend(book: Book, decision: object, reward: object, reason: object, actor: str | None) -> Outcome:
    """Supersede the outcome of a decision, and say why."""
    signed = book.signed(actor)
    which, value = _check_id(decision), book.design.belief.check_reward(reward)
    why = check_text("reason", reason)

    def work(connection: Connection) -> Outcome:
        asked, revisions = _find(book, connection, [which])
        earlier = revisions.get(which, [])
        if not earlier:
            raise ConflictError(f"Decision {which!r} has no outcome to amend. Use tell for the first one.")
        last = earlier[-1]
        if (last["kind"], last["reward"], last["reason"]) == ("amended", value, why):
            return _outcome(last, repeated=True)  # the same call again, whose answer was lost on the way
        row = _row(asked[which], earlier, value, "amended", last["imputed"], why) | signed
        _insert(book, connection, [row])
        return _outcome(row)

    return book.store.attempt(work)


def _check_id(decision: object) -> str:
    if not isinstance(decision, str) or not decision:
        raise NotFoundError(
            f"A decision is named by its id, a text such as ask returned, got {checks.shown(decision)}."
        )
    return decision


def _find(book: Book, connection: Connection, ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The decisions with these ids, all of this experiment, and the outcomes they have, in order."""
    asked: dict[str, Any] = {}
    revisions: dict[str, list[Any]] = {}
    for start in range(0, len(ids), _CHUNK):
        some = list(ids[start : start + _CHUNK])
        columns = (decisions.c.id, decisions.c.experiment, decisions.c.arm, decisions.c.context)
        for row in connection.execute(sa.select(*columns).where(decisions.c.id.in_(some))):
            asked[row.id] = row
        query = sa.select(outcomes).where(outcomes.c.decision.in_(some)).order_by(outcomes.c.revision)
        for found in connection.execute(query).mappings():
            revisions.setdefault(found["decision"], []).append(dict(found))
    for decision in ids:
        if decision not in asked:
            raise NotFoundError(
                f"No decision has the id {checks.shown(decision)}. Use d.id of what ask returned; pending() lists them."
            )
        if asked[decision].experiment != book.id:
            query = sa.select(experiments.c.name).where(experiments.c.id == asked[decision].experiment)
            other = connection.execute(query).scalar()
            raise OtherExperimentError(
                f"Decision {decision!r} belongs to experiment {other!r}, not to {book.name!r}. Load that one."
            )
    return asked, revisions


def _standing(earlier: list[Any], reward: float, imputed: bool, decision: str, keep: bool) -> Any:
    """The outcome that makes this tell a repetition; None where it is news; a conflict where it contradicts."""
    real = [row for row in earlier if not row["imputed"]]
    against = real or (earlier if imputed else [])
    if not against:
        return None
    # the first value, which a repeated tell carries, or the one that an amendment made of it
    if keep or reward in (against[0]["reward"], against[-1]["reward"]):
        return against[-1]
    raise ConflictError(
        f"Decision {decision!r} already has the outcome {against[-1]['reward']:g}; {reward:g} was told now and not "
        f"stored. If it was wrong, amend({decision!r}, {reward:g}, reason=...) supersedes it."
    )


def _row(asked: Any, earlier: list[Any], reward: float, kind: str, imputed: bool, reason: str | None) -> dict[str, Any]:
    return {
        "experiment": asked.experiment,
        "decision": asked.id,
        "revision": len(earlier) + 1,
        "kind": kind,
        "imputed": imputed,
        "arm": asked.arm,
        "reward": reward,
        "previous": earlier[-1]["reward"] if earlier else None,
        "place": earlier[0]["place"] if earlier else None,  # None: this transaction's own number
        "context": asked.context,
        "reason": reason,
    }


def _insert(book: Book, connection: Connection, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    xid = book.store.draw_xid(connection, book.id)
    written = [row | {"xid": xid, "place": xid if row["place"] is None else row["place"]} for row in rows]
    written.sort(key=lambda row: (row["decision"], row["revision"]))  # one order for all: writers cannot deadlock
    connection.execute(sa.insert(outcomes), written)


def _outcome(row: Any, repeated: bool = False) -> Outcome:
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
    """Rows of outcomes from before the experiment: they have no decision, and count all the same."""
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
