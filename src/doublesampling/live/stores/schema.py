"""The tables of a store. All are append-only except caches (checkpoints, sequences), simulations, and the health row.

There are deliberately no foreign keys: PostgreSQL checks them by locking the referenced row, so every ``ask`` would
lock the row of its experiment. Rows are never deleted, so a reference that was checked stays valid.
"""

import datetime
from typing import Any

import sqlalchemy as sa

VERSION_TABLE = "ds_version"
HEAD = 6
"""The schema version that this package reads and writes."""
APPEND_ONLY = (
    "ds_experiments",
    "ds_decisions",
    "ds_outcomes",
    "ds_events",
    "ds_eras",
    "ds_keys",
    "ds_reads",
    "ds_store",
)

metadata = sa.MetaData()
Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""64 bits in both databases; SQLite numbers rows automatically only where the column type is INTEGER."""


class Instant(sa.types.TypeDecorator[datetime.datetime]):
    """A time in UTC: timestamptz, or ISO text where there is no such type."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        """Return text for SQLite, which has no date type."""
        return dialect.type_descriptor(sa.String(40) if dialect.name == "sqlite" else sa.DateTime(timezone=True))

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        """Return the value to store, in UTC."""
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(datetime.UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime.datetime | None:
        """Return the stored value as a datetime in UTC."""
        if value is None:
            return None
        moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(datetime.UTC)


def _audit() -> list[sa.Column[Any]]:
    """Return the provenance columns: who wrote a row, when, and with which version."""
    return [
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
    ]


experiments = sa.Table(
    "ds_experiments",
    metadata,
    sa.Column("id", Number, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("design", sa.Text, nullable=False),
    *_audit(),
)

decisions = sa.Table(
    "ds_decisions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("experiment", Number, nullable=False),
    sa.Column("number", Number, nullable=False),
    sa.Column("time", Number, nullable=False),
    sa.Column("position", Number, nullable=False),
    sa.Column("unit", sa.Text),
    sa.Column("unit_once", sa.Text),
    sa.Column("unit_round", Number, nullable=False),  # the number of voided decisions of the unit before this one
    sa.Column("request_key", sa.Text),
    sa.Column("key_scope", sa.Text, nullable=False),  # who owns the key: an API key's id, or "" for plain Python
    sa.Column("key_part", Number, nullable=False),  # 0: ask; 1, 2, ...: the items of ask_many; -1: before schema 3
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
    sa.Index("ds_decisions_xid", "experiment", "xid"),
)

outcomes = sa.Table(
    "ds_outcomes",
    metadata,
    sa.Column("seq", Number, primary_key=True),
    sa.Column("experiment", Number, nullable=False),
    sa.Column("decision", sa.Text),  # null: history
    sa.Column("revision", Number, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # told, imputed, amended, withdrawn, voided, history
    sa.Column("imputed", sa.Boolean, nullable=False),
    sa.Column("arm", Number, nullable=False),
    sa.Column("reward", sa.Double),  # null: withdrawn, voided
    sa.Column("previous", sa.Double),  # the reward that this row supersedes
    sa.Column("place", Number, nullable=False),  # xid of the decision's first outcome
    sa.Column("context", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("xid", Number, nullable=False),
    *_audit(),
    sa.UniqueConstraint("decision", "revision", name="ds_outcomes_revision"),
    sa.Index("ds_outcomes_xid", "experiment", "xid", "seq"),
)

events = sa.Table(
    "ds_events",
    metadata,
    sa.Column("seq", Number, primary_key=True),
    sa.Column("experiment", Number, nullable=False),
    sa.Column("revision", Number, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # pause, resume, drop_arm, add_arm, history, look
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("request_key", sa.Text),
    sa.Column("key_scope", sa.Text, nullable=False),
    sa.Column("xid", Number, nullable=False),
    *_audit(),
    sa.UniqueConstraint("experiment", "revision", name="ds_events_revision"),
    sa.UniqueConstraint("experiment", "request_key", "key_scope", name="ds_events_request_key"),
    sa.Index("ds_events_xid", "experiment", "xid"),
)

eras = sa.Table(
    "ds_eras",
    metadata,
    sa.Column("id", Number, primary_key=True),
    sa.Column("offset", Number, nullable=False, unique=True),  # added to the server's own transaction numbers
    *_audit(),
)

checkpoints = sa.Table(  # the table kept its first name
    "ds_snapshots",
    metadata,
    sa.Column("experiment", Number, primary_key=True, autoincrement=False),
    sa.Column("watermark", Number, primary_key=True, autoincrement=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("arms", Number, nullable=False),
    sa.Column("decisions", Number, nullable=False),
    sa.Column("at", Instant, nullable=False),
)

sequences = sa.Table(  # sums of confidence sequences, one row per contrast and settings
    "ds_sequences",
    metadata,
    sa.Column("experiment", Number, primary_key=True, autoincrement=False),
    sa.Column("settings", sa.Text, primary_key=True),
    sa.Column("watermark", Number, nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("at", Instant, nullable=False),
)

keys = sa.Table(  # API keys of the service; a revocation is a row too
    "ds_keys",
    metadata,
    sa.Column("seq", Number, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # made, revoked
    sa.Column("digest", sa.Text),
    sa.Column("role", sa.Text),
    sa.Column("experiment", sa.Text),  # null: every experiment
    sa.Column("label", sa.Text),
    sa.Column("expires", Instant),  # null: never; of a revocation: when it takes effect, null for at once
    sa.Column("scopes", sa.Text),  # null: those of the role
    sa.Column("replaces", sa.Text),  # the key that this one was rotated from
    *_audit(),
    sa.UniqueConstraint("key", "kind", name="ds_keys_kind"),
    sa.UniqueConstraint("digest", name="ds_keys_digest"),
)

reads = sa.Table(  # of the service: who read or exported which results
    "ds_reads",
    metadata,
    sa.Column("seq", Number, primary_key=True),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("count", Number, nullable=False),  # how many times between at and until
    sa.Column("until", Instant, nullable=False),
    *_audit(),
    sa.Index("ds_reads_experiment", "experiment", "seq"),
)

simulations = sa.Table(  # of the service: simulations of designs, which every server of a store can show and stop
    "ds_simulations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("design", sa.Text, nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),  # waiting, running, done, failed, stopped
    sa.Column("parts", sa.Text, nullable=False),  # the characteristics of the chunks that are finished
    sa.Column("detail", sa.Text),
    sa.Column("server", sa.Text, nullable=False),  # which process simulates it
    sa.Column("beat", Instant, nullable=False),  # when that process last said that it lives
    sa.Column("attempts", Number, nullable=False),  # how many processes began it
    *_audit(),
    sa.Index("ds_simulations_at", "at"),
)

incarnations = sa.Table(  # pg_restore loads tables in order of their names: this one comes after the tables with data
    "ds_store",
    metadata,
    sa.Column("seq", Number, primary_key=True),
    sa.Column("identity", sa.Text, nullable=False),  # of the store, never changes
    sa.Column("incarnation", sa.Text, nullable=False, unique=True),  # a new one after every restore
    sa.Column("kind", sa.Text, nullable=False),  # made, upgraded, restored
    *_audit(),
)

health = sa.Table(  # one row, updated by the check that the store is writable
    "ds_health",
    metadata,
    sa.Column("id", Number, primary_key=True, autoincrement=False),
    sa.Column("at", Instant, nullable=False),
)
