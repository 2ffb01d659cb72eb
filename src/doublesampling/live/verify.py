"""Verification of a store: the database's own checks, the triggers, and every experiment replayed."""

from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.live import upgrade
from doublesampling.live.book import Book, open_book
from doublesampling.live.design import grown
from doublesampling.live.memory import StoredLog, standing
from doublesampling.live.registry import list_experiments
from doublesampling.live.replay import Walk, cut_state, replay
from doublesampling.live.schema import APPEND_ONLY, HEAD, decisions, experiments, outcomes, snapshots
from doublesampling.live.snapshot import Snapshot
from doublesampling.live.store import Store


@dataclass
class Verification:
    """What was looked at, and what is wrong with it."""

    identity: str
    schema: int = HEAD
    experiments: list[dict[str, Any]] = field(default_factory=list)
    """Per experiment: name, decisions, checkpoints, and whether all of them agree with the log."""
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"ok": self.ok, **self.__dict__}


def verify(store: Store) -> Verification:
    """Check a whole store. It only reads, and may take minutes for millions of decisions."""
    upgrade.check(store)
    with store.reading() as connection:
        found = Verification(store.incarnation(connection).identity)
        found.problems += [*_database(connection), *_triggers(connection), *_references(connection)]
    for listed in list_experiments(store):
        book = open_book(store, listed["name"], None)
        again = replay(book)
        found.problems += [f"{book.name}: {difference}" for difference in again.differences]
        checkpoints, wrong = _checkpoints(book)
        found.problems += [f"{book.name}: {problem}" for problem in wrong]
        agrees = again.agrees and not wrong
        row = {"name": book.name, "decisions": again.decisions, "checkpoints": checkpoints, "agrees": agrees}
        found.experiments.append(row)
    return found


def _database(connection: Connection) -> list[str]:
    """What the database says of itself."""
    if connection.dialect.name == "sqlite":
        said = connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars().all()
        return [] if said == ["ok"] else [f"the database is damaged: {line}" for line in said]
    problems = []
    for table in (decisions, outcomes):  # a table and its index must hold the same rows
        query = sa.select(sa.func.count()).select_from(table).where(table.c.experiment >= 0, table.c.xid >= 0)
        counted = []
        for by_index in ("off", "on"):
            connection.exec_driver_sql(f"SET LOCAL enable_seqscan = {'off' if by_index == 'on' else 'on'}")
            for way in ("indexscan", "indexonlyscan", "bitmapscan"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = {by_index}")
            counted.append(connection.execute(query).scalar_one())
        if counted[0] != counted[1]:
            problems.append(f"{table.name} has {counted[0]} rows, its index {counted[1]}: run REINDEX")
    return problems


def _triggers(connection: Connection) -> list[str]:
    """Whether everything that refuses change is in place."""
    if connection.dialect.name == "sqlite":
        wanted = {f"{table}_no_{what}" for table in APPEND_ONLY for what in ("update", "delete", "replace")}
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    else:
        wanted = {f"{table}_no_change" for table in APPEND_ONLY}
        query = "SELECT tgname FROM pg_trigger WHERE tgenabled = 'O'"
    missing = wanted - set(connection.exec_driver_sql(query).scalars())
    return [f"the trigger {name} is missing: rows could be changed" for name in sorted(missing)]


def _references(connection: Connection) -> list[str]:
    """Rows that name something which is not there."""
    strays = {
        "decisions of no experiment": sa.select(sa.func.count())
        .select_from(decisions)
        .where(decisions.c.experiment.not_in(sa.select(experiments.c.id))),
        "outcomes of no decision, or of one of another experiment or arm": sa.select(sa.func.count())
        .select_from(outcomes.outerjoin(decisions, decisions.c.id == outcomes.c.decision))
        .where(
            outcomes.c.decision.is_not(None),
            decisions.c.id.is_(None)
            | (decisions.c.experiment != outcomes.c.experiment)
            | (decisions.c.arm != outcomes.c.arm),
        ),
    }
    counted = {what: int(connection.execute(query).scalar_one()) for what, query in strays.items()}
    return [f"{count} {what}" for what, count in counted.items() if count]


def _checkpoints(book: Book) -> tuple[int, list[str]]:
    """How many states are stored, and which of them do not follow from the log."""
    with book.store.reading() as connection:
        log = StoredLog(connection, book.id, book.design.belief)
        happened, rows = log.events(0), log.rows(0)
        made = connection.execute(
            sa.select(decisions.c.xid).where(decisions.c.experiment == book.id).order_by(decisions.c.xid)
        )
        walk = Walk(book.design.belief, happened, rows, list(made.scalars()))
        stored = connection.execute(
            sa.select(snapshots).where(snapshots.c.experiment == book.id).order_by(snapshots.c.watermark)
        ).all()
    arms = len(standing(book.design, happened)[0])
    belief = book.design.belief if arms == book.design.belief.arms else grown(book.design.belief, arms)
    wrong = []
    for row in stored:
        seen = Snapshot(row.watermark, row.watermark)
        state = cut_state(walk.state_at(seen, belief), row.arms)
        if state.to_json() != row.state or walk.time_at(seen) != row.decisions + 1:
            wrong.append(f"the checkpoint at {row.watermark} does not follow from the log: delete it from ds_snapshots")
    return len(stored), wrong
