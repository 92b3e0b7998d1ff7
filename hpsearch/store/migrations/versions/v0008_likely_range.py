"""The interval in which the value that is expected of a trial lies nine times in ten."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0008"
down_revision = "hpsearch_0007"


def upgrade() -> None:
    op.add_column("trials", sa.Column("expected_low", sa.Double()))
    op.add_column("trials", sa.Column("expected_high", sa.Double()))
