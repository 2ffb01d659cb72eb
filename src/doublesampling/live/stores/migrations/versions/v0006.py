"""Schema 6: a cache of confidence sequences."""

import sqlalchemy as sa
from alembic import op

from doublesampling.live.stores.schema import Instant, Number

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "ds_sequences",
        sa.Column("experiment", Number, primary_key=True, autoincrement=False),
        sa.Column("settings", sa.Text, primary_key=True),
        sa.Column("watermark", Number, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("at", Instant, nullable=False),
    )
