"""Trials that begin with a checkpoint of another trial."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0007"
down_revision = "hpsearch_0006"


def upgrade() -> None:
    with op.batch_alter_table("trials") as trials:
        trials.add_column(sa.Column("continues", sa.Integer()))
        trials.add_column(sa.Column("continues_at", sa.Double()))
        trials.add_column(sa.Column("continues_with", sa.Text()))
