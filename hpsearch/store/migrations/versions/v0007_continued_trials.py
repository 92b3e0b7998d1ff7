"""Trials that begin with a checkpoint of another one: which, how far it had trained, and where."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0007"
down_revision = "hpsearch_0006"


def upgrade() -> None:
    op.add_column("trials", sa.Column("continues", sa.Integer()))
    op.add_column("trials", sa.Column("continues_at", sa.Double()))
    op.add_column("trials", sa.Column("continues_with", sa.Text()))
