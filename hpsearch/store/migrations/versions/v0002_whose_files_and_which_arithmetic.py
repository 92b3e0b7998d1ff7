"""Whose files a folder holds, when a driver last lived, what a trial keeps on disk, and how an
attempt computed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0002"
down_revision = "hpsearch_0001"


def upgrade() -> None:
    op.add_column("studies", sa.Column("uid", sa.Text()))
    op.add_column("studies", sa.Column("alive_at", sa.Double()))
    op.add_column("trials", sa.Column("best_checkpoint", sa.Text()))
    op.add_column("trials", sa.Column("checkpoint_bytes", sa.BigInteger()))
    op.add_column("attempts", sa.Column("arithmetic", sa.JSON(none_as_null=True)))
    op.add_column("attempts", sa.Column("slowest_pace", sa.Double()))
