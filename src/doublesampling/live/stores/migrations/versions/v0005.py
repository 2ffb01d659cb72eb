"""Schema 5: simulations of designs that the service has started, for all servers of a store."""

import sqlalchemy as sa
from alembic import op

from doublesampling.live.stores.schema import Instant, Number

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the table. Its rows change while a simulation runs, and old ones are deleted."""
    op.create_table(
        "ds_simulations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("experiment", sa.Text, nullable=False),
        sa.Column("design", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("parts", sa.Text, nullable=False),
        sa.Column("detail", sa.Text),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("beat", Instant, nullable=False),
        sa.Column("attempts", Number, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Index("ds_simulations_at", "at"),
    )
