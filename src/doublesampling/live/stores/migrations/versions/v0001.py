"""Schema 1: experiments, decisions, outcomes, events, eras, snapshots, and triggers that refuse change."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from doublesampling.live.stores.schema import Instant, Number

revision = "0001"
down_revision = None

_REFUSED = "append-only: rows of {table} are never changed or deleted"
# REPLACE deletes without asking the triggers, so an insert on a taken key is refused by a trigger of its own
_TAKEN = {
    "ds_experiments": ["id = NEW.id", "name = NEW.name"],
    "ds_decisions": [
        "id = NEW.id",
        "experiment = NEW.experiment AND number = NEW.number",
        "experiment = NEW.experiment AND unit_once = NEW.unit_once",
        "experiment = NEW.experiment AND request_key = NEW.request_key",
    ],
    "ds_outcomes": ["seq = NEW.seq", "decision = NEW.decision AND revision = NEW.revision"],
    "ds_events": [
        "seq = NEW.seq",
        "experiment = NEW.experiment AND revision = NEW.revision",
        "experiment = NEW.experiment AND request_key = NEW.request_key",
    ],
    "ds_eras": ["id = NEW.id", '"offset" = NEW."offset"'],
}


def _audit() -> list[sa.Column[Any]]:
    return [
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
    ]


def upgrade() -> None:
    """Make the tables, then forbid changing them."""
    _make_experiments()
    _make_decisions()
    _make_outcomes()
    _make_events()
    if op.get_bind().dialect.name == "sqlite":
        _refuse_on_sqlite()
    else:
        _refuse_on_postgresql()


def _make_experiments() -> None:
    op.create_table(
        "ds_experiments",
        sa.Column("id", Number, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("design", sa.Text, nullable=False),
        *_audit(),
    )
    op.create_table(
        "ds_eras",
        sa.Column("id", Number, primary_key=True),
        sa.Column("offset", Number, nullable=False, unique=True),
        *_audit(),
    )
    op.create_table(
        "ds_snapshots",
        sa.Column("experiment", Number, primary_key=True, autoincrement=False),
        sa.Column("watermark", Number, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("arms", Number, nullable=False),
        sa.Column("decisions", Number, nullable=False),
        sa.Column("at", Instant, nullable=False),
    )


def _make_decisions() -> None:
    op.create_table(
        "ds_decisions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("experiment", Number, nullable=False),
        sa.Column("number", Number, nullable=False),
        sa.Column("time", Number, nullable=False),
        sa.Column("position", Number, nullable=False),
        sa.Column("unit", sa.Text),
        sa.Column("unit_once", sa.Text),
        sa.Column("request_key", sa.Text),
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
        sa.UniqueConstraint("experiment", "unit_once", name="ds_decisions_unit_once"),
        sa.UniqueConstraint("experiment", "request_key", name="ds_decisions_request_key"),
    )
    op.create_index("ds_decisions_xid", "ds_decisions", ["experiment", "xid"])


def _make_outcomes() -> None:
    op.create_table(
        "ds_outcomes",
        sa.Column("seq", Number, primary_key=True),
        sa.Column("experiment", Number, nullable=False),
        sa.Column("decision", sa.Text),
        sa.Column("revision", Number, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("imputed", sa.Boolean, nullable=False),
        sa.Column("arm", Number, nullable=False),
        sa.Column("reward", sa.Double, nullable=False),
        sa.Column("previous", sa.Double),
        sa.Column("place", Number, nullable=False),
        sa.Column("context", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("xid", Number, nullable=False),
        *_audit(),
        sa.UniqueConstraint("decision", "revision", name="ds_outcomes_revision"),
    )
    op.create_index("ds_outcomes_xid", "ds_outcomes", ["experiment", "xid", "seq"])


def _make_events() -> None:
    op.create_table(
        "ds_events",
        sa.Column("seq", Number, primary_key=True),
        sa.Column("experiment", Number, nullable=False),
        sa.Column("revision", Number, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("request_key", sa.Text),
        sa.Column("xid", Number, nullable=False),
        *_audit(),
        sa.UniqueConstraint("experiment", "revision", name="ds_events_revision"),
        sa.UniqueConstraint("experiment", "request_key", name="ds_events_request_key"),
    )
    op.create_index("ds_events_xid", "ds_events", ["experiment", "xid"])


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


def _refuse_on_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION ds_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'append-only: rows of % are never changed or deleted', TG_TABLE_NAME; END $$"
    )
    for table in _TAKEN:
        op.execute(
            f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION ds_refuse()"
        )
