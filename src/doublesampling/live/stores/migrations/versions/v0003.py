"""Schema 3: owners of request keys, voided and withdrawn decisions, and the identity of a store."""

import datetime
import unicodedata
import uuid
from typing import Any

import sqlalchemy as sa
from alembic import op

from doublesampling import __version__
from doublesampling.live.stores.schema import Instant, Number

revision = "0003"
down_revision = "0002"

_REFUSED = "append-only: rows of {table} are never changed or deleted"
# REPLACE deletes without asking the triggers, so an insert on a taken key is refused by a trigger of its own
_TAKEN = {
    "ds_decisions": [
        "id = NEW.id",
        "experiment = NEW.experiment AND number = NEW.number",
        "experiment = NEW.experiment AND unit_once = NEW.unit_once AND unit_round = NEW.unit_round",
        "experiment = NEW.experiment AND request_key = NEW.request_key AND key_scope = NEW.key_scope "
        "AND key_part = NEW.key_part",
    ],
    "ds_outcomes": ["seq = NEW.seq", "decision = NEW.decision AND revision = NEW.revision"],
    "ds_events": [
        "seq = NEW.seq",
        "experiment = NEW.experiment AND revision = NEW.revision",
        "experiment = NEW.experiment AND request_key = NEW.request_key AND key_scope = NEW.key_scope",
    ],
    "ds_store": ["seq = NEW.seq", "incarnation = NEW.incarnation"],
}
# the service wrote "key ID (label)" as the actor of what came with an API key
_OWNER = (
    "CASE WHEN actor LIKE 'key ________%' AND substr(actor, 5, 8) IN (SELECT key FROM ds_keys) "
    "THEN substr(actor, 5, 8) ELSE '' END"
)


def upgrade() -> None:
    """Change three tables and add two."""
    before = op.get_bind().execute(sa.text("SELECT count(*) FROM ds_experiments")).scalar_one()
    if op.get_bind().dialect.name == "sqlite":
        _change_on_sqlite()
    else:
        _change_on_postgresql()
    _add_tables("upgraded" if before else "made")
    if op.get_bind().dialect.name == "sqlite":
        _refuse_on_sqlite()
    else:
        op.execute(
            "CREATE TRIGGER ds_store_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ds_store "
            "FOR EACH STATEMENT EXECUTE FUNCTION ds_refuse()"
        )


def _audit() -> list[sa.Column[Any]]:
    return [
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
    ]


def _add_tables(kind: str) -> None:
    made = op.create_table(
        "ds_store",
        sa.Column("seq", Number, primary_key=True),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("incarnation", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        *_audit(),
    )
    health = op.create_table(
        "ds_health",
        sa.Column("id", Number, primary_key=True, autoincrement=False),
        sa.Column("at", Instant, nullable=False),
    )
    now = datetime.datetime.now(datetime.UTC)
    signed = {"actor": "db upgrade", "at": now, "version": __version__}
    row = {"identity": str(uuid.uuid4()), "incarnation": str(uuid.uuid4()), "kind": kind} | signed
    op.get_bind().execute(sa.insert(made).values(row))
    op.get_bind().execute(sa.insert(health).values(id=1, at=now))


def _change_on_postgresql() -> None:
    for table in ("ds_decisions", "ds_events"):
        op.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_no_change")
    op.execute(
        "ALTER TABLE ds_decisions ADD COLUMN unit_round BIGINT NOT NULL DEFAULT 0, "
        "ADD COLUMN key_scope TEXT NOT NULL DEFAULT '', ADD COLUMN key_part BIGINT NOT NULL DEFAULT -1, "
        "DROP CONSTRAINT ds_decisions_unit_once, DROP CONSTRAINT ds_decisions_request_key"
    )
    op.execute(
        "ALTER TABLE ds_events ADD COLUMN key_scope TEXT NOT NULL DEFAULT '', DROP CONSTRAINT ds_events_request_key"
    )
    op.execute("ALTER TABLE ds_outcomes ALTER COLUMN reward DROP NOT NULL")
    for table in ("ds_decisions", "ds_events"):
        op.execute(f"UPDATE {table} SET key_scope = {_OWNER} WHERE request_key IS NOT NULL AND actor LIKE 'key %'")
    _normalize("~ '[^ -~]'")
    op.execute(
        "ALTER TABLE ds_decisions ALTER unit_round DROP DEFAULT, ALTER key_scope DROP DEFAULT, "
        "ALTER key_part DROP DEFAULT, "
        "ADD CONSTRAINT ds_decisions_unit_once UNIQUE (experiment, unit_once, unit_round), "
        "ADD CONSTRAINT ds_decisions_request_key UNIQUE (experiment, request_key, key_scope, key_part)"
    )
    op.execute(
        "ALTER TABLE ds_events ALTER key_scope DROP DEFAULT, "
        "ADD CONSTRAINT ds_events_request_key UNIQUE (experiment, request_key, key_scope)"
    )
    for table in ("ds_decisions", "ds_events"):
        op.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_no_change")


def _change_on_sqlite() -> None:
    """Recreate each table with the new constraints and copy its rows: SQLite cannot change a constraint."""
    for table, columns in (("ds_decisions", _decisions()), ("ds_outcomes", _outcomes()), ("ds_events", _events())):
        op.create_table(f"{table}_new", *columns)
        old = [c["name"] for c in sa.inspect(op.get_bind()).get_columns(table)]
        new = {"unit_round": "0", "key_part": "-1", "key_scope": _OWNER}
        added = [c.name for c in columns if isinstance(c, sa.Column) and c.name in new and c.name not in old]
        op.execute(
            f"INSERT INTO {table}_new ({', '.join(old + added)}) "
            f"SELECT {', '.join(old + [new[name] for name in added])} FROM {table}"
        )
        op.execute(f"DROP TABLE {table}")
        op.execute(f"ALTER TABLE {table}_new RENAME TO {table}")
    op.create_index("ds_decisions_xid", "ds_decisions", ["experiment", "xid"])
    op.create_index("ds_outcomes_xid", "ds_outcomes", ["experiment", "xid", "seq"])
    op.create_index("ds_events_xid", "ds_events", ["experiment", "xid"])
    _normalize("GLOB '*[^ -~]*'")


def _normalize(not_ascii: str) -> None:
    """Normalize old units and keys to NFC, as new ones are, where the normalized text is not taken."""
    for column in ("unit_once", "request_key"):
        rows = op.get_bind().execute(
            sa.text(f"SELECT id, experiment, {column} AS found FROM ds_decisions WHERE {column} {not_ascii}")
        )
        for row in rows.all():
            wanted = unicodedata.normalize("NFC", row.found)
            where = {"experiment": row.experiment, "wanted": wanted}
            free = sa.text(f"SELECT 1 FROM ds_decisions WHERE experiment = :experiment AND {column} = :wanted")
            if wanted != row.found and op.get_bind().execute(free, where).first() is None:
                change = sa.text(f"UPDATE ds_decisions SET {column} = :wanted WHERE id = :id")
                op.get_bind().execute(change, {"wanted": wanted, "id": row.id})


def _decisions() -> list[Any]:
    return [
        sa.Column("id", sa.Text, primary_key=True),
        *(sa.Column(name, Number, nullable=False) for name in ("experiment", "number", "time", "position")),
        sa.Column("unit", sa.Text),
        sa.Column("unit_once", sa.Text),
        sa.Column("unit_round", Number, nullable=False),
        sa.Column("request_key", sa.Text),
        sa.Column("key_scope", sa.Text, nullable=False),
        sa.Column("key_part", Number, nullable=False),
        sa.Column("context", sa.Text),
        sa.Column("arm", Number, nullable=False),
        sa.Column("propensities", sa.Text, nullable=False),
        sa.Column("probability_optimal", sa.Text, nullable=False),
        sa.Column("candidates", Number, nullable=False),
        sa.Column("votes", sa.Text, nullable=False),
        sa.Column("observations", Number, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text, nullable=False),
        sa.Column("xid", Number, nullable=False),
        *_audit(),
        sa.UniqueConstraint("experiment", "number", name="ds_decisions_number"),
        sa.UniqueConstraint("experiment", "unit_once", "unit_round", name="ds_decisions_unit_once"),
        sa.UniqueConstraint("experiment", "request_key", "key_scope", "key_part", name="ds_decisions_request_key"),
    ]


def _outcomes() -> list[Any]:
    return [
        sa.Column("seq", Number, primary_key=True),
        sa.Column("experiment", Number, nullable=False),
        sa.Column("decision", sa.Text),
        sa.Column("revision", Number, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("imputed", sa.Boolean, nullable=False),
        sa.Column("arm", Number, nullable=False),
        sa.Column("reward", sa.Double),
        sa.Column("previous", sa.Double),
        sa.Column("place", Number, nullable=False),
        sa.Column("context", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("xid", Number, nullable=False),
        *_audit(),
        sa.UniqueConstraint("decision", "revision", name="ds_outcomes_revision"),
    ]


def _events() -> list[Any]:
    return [
        sa.Column("seq", Number, primary_key=True),
        sa.Column("experiment", Number, nullable=False),
        sa.Column("revision", Number, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("request_key", sa.Text),
        sa.Column("key_scope", sa.Text, nullable=False),
        sa.Column("xid", Number, nullable=False),
        *_audit(),
        sa.UniqueConstraint("experiment", "revision", name="ds_events_revision"),
        sa.UniqueConstraint("experiment", "request_key", "key_scope", name="ds_events_request_key"),
    ]


def _refuse_on_sqlite() -> None:
    for table, keys in _TAKEN.items():
        for change in ("UPDATE", "DELETE"):
            message = _REFUSED.format(table=table)
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            )
        taken = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {key})" for key in keys)
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {taken} "
            f"BEGIN SELECT RAISE(ABORT, 'append-only: this key of {table} is taken'); END"
        )
