"""Signs of life of the processes that ask for trials themselves, one for each running attempt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0005"
down_revision = "hpsearch_0004"


def upgrade() -> None:
    op.create_table(
        "heartbeats",
        sa.Column("study_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("trial", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("heard", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("study_id", "trial", "attempt", name="pk_heartbeats"),
        sa.ForeignKeyConstraint(
            ["study_id", "trial"],
            ["trials.study_id", "trials.number"],
            name="fk_heartbeats_trials",
            ondelete="CASCADE",
        ),
    )
