"""Schema 2: keys of the service, only their digests, and triggers that refuse change."""

import sqlalchemy as sa
from alembic import op

from doublesampling.live.stores.schema import Instant, Number

revision = "0002"
down_revision = "0001"

_TAKEN = "seq = NEW.seq OR (key = NEW.key AND kind = NEW.kind) OR digest = NEW.digest"


def upgrade() -> None:
    """Make the table, then forbid changing it."""
    op.create_table(
        "ds_keys",
        sa.Column("seq", Number, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("digest", sa.Text),
        sa.Column("role", sa.Text),
        sa.Column("experiment", sa.Text),
        sa.Column("label", sa.Text),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.UniqueConstraint("key", "kind", name="ds_keys_kind"),
        sa.UniqueConstraint("digest", name="ds_keys_digest"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER ds_keys_no_{change.lower()} BEFORE {change} ON ds_keys "
                "BEGIN SELECT RAISE(ABORT, 'append-only: rows of ds_keys are never changed or deleted'); END"
            )
        op.execute(
            f"CREATE TRIGGER ds_keys_no_replace BEFORE INSERT ON ds_keys "
            f"WHEN EXISTS (SELECT 1 FROM ds_keys WHERE {_TAKEN}) "
            "BEGIN SELECT RAISE(ABORT, 'append-only: this key of ds_keys is taken'); END"
        )
    else:
        op.execute(
            "CREATE TRIGGER ds_keys_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ds_keys "
            "FOR EACH STATEMENT EXECUTE FUNCTION ds_refuse()"
        )
