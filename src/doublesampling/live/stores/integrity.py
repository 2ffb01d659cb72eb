"""Integrity checks of a database: its own check, the append-only triggers, and references between tables."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.live.stores.schema import APPEND_ONLY, decisions, experiments, outcomes


def database_problems(connection: Connection) -> list[str]:
    """Return the problems that the database itself reports."""
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


def missing_triggers(connection: Connection) -> list[str]:
    """Return the triggers that refuse updates and deletes, and that are missing."""
    if connection.dialect.name == "sqlite":
        wanted = {f"{table}_no_{what}" for table in APPEND_ONLY for what in ("update", "delete", "replace")}
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    else:
        wanted = {f"{table}_no_change" for table in APPEND_ONLY}
        query = "SELECT tgname FROM pg_trigger WHERE tgenabled = 'O'"
    missing = wanted - set(connection.exec_driver_sql(query).scalars())
    return [f"the trigger {name} is missing: rows could be changed" for name in sorted(missing)]


def dangling_references(connection: Connection) -> list[str]:
    """Return counts of rows that refer to a row which does not exist."""
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
