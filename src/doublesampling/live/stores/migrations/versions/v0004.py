"""Schema 4: keys that expire, have scopes and replace others; and the log of who read what."""

import sqlalchemy as sa
from alembic import op

from doublesampling.live.stores.schema import Instant, Number

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns and the table, then forbid changing its rows."""
    op.add_column("ds_keys", sa.Column("expires", Instant))
    op.add_column("ds_keys", sa.Column("scopes", sa.Text))
    op.add_column("ds_keys", sa.Column("replaces", sa.Text))
    op.create_table(
        "ds_reads",
        sa.Column("seq", Number, primary_key=True),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("experiment", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("count", Number, nullable=False),
        sa.Column("until", Instant, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Index("ds_reads_experiment", "experiment", "seq"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER ds_reads_no_{change.lower()} BEFORE {change} ON ds_reads "
                "BEGIN SELECT RAISE(ABORT, 'append-only: rows of ds_reads are never changed or deleted'); END"
            )
        op.execute(
            "CREATE TRIGGER ds_reads_no_replace BEFORE INSERT ON ds_reads "
            "WHEN EXISTS (SELECT 1 FROM ds_reads WHERE seq = NEW.seq) "
            "BEGIN SELECT RAISE(ABORT, 'append-only: this key of ds_reads is taken'); END"
        )
    else:
        op.execute(
            "CREATE TRIGGER ds_reads_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ds_reads "
            "FOR EACH STATEMENT EXECUTE FUNCTION ds_refuse()"
        )
