"""Tell: store outcomes. An outcome is stored once, superseded by revisions, and never overwritten."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import ConflictError, DoubleSamplingError, SettingError, StorageError
from doublesampling.live.design import check_reason
from doublesampling.live.looking import look_after_tell
from doublesampling.live.queries.revisions import DecisionRevisions, check_id
from doublesampling.live.records import Outcome
from doublesampling.live.session import Session
from doublesampling.live.stores.schema import outcomes


@dataclass(frozen=True)
class NewOutcome:
    """An outcome to store.

    With ``keep``, a stored outcome stays whatever its value, and no conflict is raised: a caller who is blind to
    results must not learn from the answer whether the stored value differs.
    """

    decision: str
    reward: float
    imputed: bool = False
    reason: str | None = None
    actor: str | None = None
    keep: bool = False


def make_outcome(
    session: Session,
    decision: object,
    reward: object,
    *,
    imputed: bool,
    reason: object,
    actor: str | None,
    keep: bool = False,
) -> NewOutcome:
    """Return an outcome whose reward the experiment's belief accepts."""
    why = None if reason is None else check_reason(reason)
    return NewOutcome(check_id(decision), session.design.check_reward(reward), imputed, why, actor, keep)


def make_outcomes(session: Session, told: object, *, imputed: bool, actor: str | None) -> list[NewOutcome]:
    """Return the outcomes of a batch, which is given as (id, reward) pairs or a mapping."""
    return [make_outcome(session, *pair, imputed=imputed, reason=None, actor=actor) for pair in to_pairs(told)]


def to_pairs(told: object) -> list[tuple[object, object]]:
    """Return the pairs of a decision and a reward of a batch, which may be given as a mapping."""
    if not isinstance(told, Iterable) or isinstance(told, str):
        raise SettingError(f"tell_many takes (id, reward) pairs or a mapping, got {checks.shown(told)}.")
    return [_to_pair(item) for item in (told.items() if isinstance(told, Mapping) else told)]


def _to_pair(item: object) -> tuple[object, object]:
    try:
        pair: tuple[Any, ...] = tuple(item)  # type: ignore[arg-type]
        decision, reward = pair
    except (TypeError, ValueError):
        raise SettingError(f"tell_many takes (id, reward) pairs, got {checks.shown(item)}.") from None
    return decision, reward


def tell(session: Session, told: Sequence[NewOutcome]) -> list[Outcome]:
    """Store outcomes, all of them or none; those that are stored already stay as they are."""
    return _tell(session, told, each=False)


def tell_each(session: Session, told: Sequence[NewOutcome]) -> list[Outcome | DoubleSamplingError]:
    """Store outcomes in one transaction; return an error for each refused one, which leaves the others unaffected."""
    return _tell(session, told, each=True)


def _tell(session: Session, told: Sequence[NewOutcome], each: bool) -> list[Any]:
    def work(connection: Connection) -> list[Any]:
        revisions = DecisionRevisions(session, connection, [item.decision for item in told])
        new: list[dict[str, Any]] = []
        answers: list[Any] = []
        for item in told:
            try:
                answers.append(_tell_one(session, revisions, item, new))
            except DoubleSamplingError as problem:
                if not each or isinstance(problem, StorageError):
                    raise
                answers.append(problem)
        insert_outcomes(session, connection, new)
        return answers

    answers = session.store.run_transaction(work)
    look_after_tell(session)
    return answers


def _tell_one(session: Session, revisions: DecisionRevisions, item: NewOutcome, new: list[dict[str, Any]]) -> Outcome:
    asked, earlier = revisions.find_open(item.decision)
    stored = _find_repeated(_since_withdrawal(earlier), item)
    if stored is not None:
        return outcome_from_row(stored, repeated=True)
    kind = "imputed" if item.imputed else "told"
    row = revision_row(asked, earlier, item.reward, kind, item.reason) | session.provenance(item.actor)
    new.append(row)
    earlier.append(row)
    return outcome_from_row(row)


def amend(session: Session, decision: object, reward: object, reason: object, actor: str | None) -> Outcome:
    """Supersede the outcome of a decision by a corrected one, with a reason."""
    signed = session.provenance(actor)
    which, value = check_id(decision), session.design.check_reward(reward)
    why = check_reason(reason)

    def work(connection: Connection) -> Outcome:
        asked, earlier = DecisionRevisions(session, connection, [which]).find_open(which)
        if not _since_withdrawal(earlier):
            raise ConflictError(f"Decision {which!r} has no outcome to amend. Use tell for the first one.")
        last = earlier[-1]
        if (last["kind"], last["reward"], last["reason"]) == ("amended", value, why):
            return outcome_from_row(last, repeated=True)  # a retry of a call whose answer was lost
        row = revision_row(asked, earlier, value, "amended", why) | signed | {"imputed": last["imputed"]}
        insert_outcomes(session, connection, [row])
        return outcome_from_row(row)

    return session.store.run_transaction(work)


def void(session: Session, decision: object, reason: object, actor: str | None) -> Outcome:
    """Mark a decision as not carried out: it stays in the log, and neither it nor its outcome counts."""
    return _retract(session, "voided", decision, reason, actor)


def withdraw(session: Session, decision: object, reason: object, actor: str | None) -> Outcome:
    """Withdraw an outcome: it stays in the log, and the decision waits for an outcome again."""
    return _retract(session, "withdrawn", decision, reason, actor)


def _retract(session: Session, kind: str, decision: object, reason: object, actor: str | None) -> Outcome:
    signed = session.provenance(actor)
    which, why = check_id(decision), check_reason(reason)

    def work(connection: Connection) -> Outcome:
        revisions = DecisionRevisions(session, connection, [which])
        asked, earlier = revisions.find(which)
        if earlier and earlier[-1]["kind"] == kind:
            return outcome_from_row(earlier[-1], repeated=True)
        if kind == "withdrawn":
            revisions.find_open(which)
            if not _since_withdrawal(earlier):
                raise ConflictError(f"Decision {which!r} has no outcome to withdraw. Nothing was stored.")
        row = revision_row(asked, earlier, None, kind, why) | signed
        insert_outcomes(session, connection, [row])
        return outcome_from_row(row)

    return session.store.run_transaction(work)


def _since_withdrawal(earlier: list[Any]) -> list[Any]:
    """Return the revisions that count: those after the last withdrawal."""
    gone = [i for i, row in enumerate(earlier) if row["kind"] == "withdrawn"]
    return earlier[gone[-1] + 1 :] if gone else earlier


def _find_repeated(earlier: list[Any], item: NewOutcome) -> Any:
    """Return the stored outcome that this one repeats, or None; raise ConflictError where it contradicts one."""
    real = [row for row in earlier if not row["imputed"]]
    against = real or (earlier if item.imputed else [])
    if not against:
        return None
    # a retry carries the first value; the value of the latest amendment is accepted too
    if item.keep or item.reward in (against[0]["reward"], against[-1]["reward"]):
        return against[-1]
    raise ConflictError(
        f"Decision {item.decision!r} already has the outcome {against[-1]['reward']:g}; {item.reward:g} was told now "
        f"and not stored. If that was wrong, correct it: amend, with a reason."
    )


def revision_row(asked: Any, earlier: list[Any], reward: float | None, kind: str, reason: str | None) -> dict[str, Any]:
    """Return the next revision of a decision's outcome, without provenance and transaction number."""
    return {
        "experiment": asked.experiment,
        "decision": asked.id,
        "revision": len(earlier) + 1,
        "kind": kind,
        "imputed": kind == "imputed",
        "arm": asked.arm,
        "reward": reward,
        "previous": earlier[-1]["reward"] if earlier else None,
        "place": earlier[0]["place"] if earlier else None,  # None: the number of the transaction that writes it
        "context": asked.context,
        "reason": reason,
    }


def insert_outcomes(session: Session, connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Insert revisions in one fixed order, so that concurrent writers cannot deadlock."""
    if not rows:
        return
    xid = session.store.draw_xid(connection, session.id)
    written = [row | {"xid": xid, "place": xid if row["place"] is None else row["place"]} for row in rows]
    written.sort(key=lambda row: (row["decision"], row["revision"]))
    connection.execute(sa.insert(outcomes), written)


def outcome_from_row(row: Any, repeated: bool = False) -> Outcome:
    """Return a stored revision as an Outcome."""
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


def history_rows(
    session: Session, arms: list[int], rewards: list[float], contexts: list[Any] | None
) -> list[dict[str, Any]]:
    """Return rows for outcomes from before the experiment: they have no decision and update the posterior."""
    return [
        {
            "experiment": session.id,
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
