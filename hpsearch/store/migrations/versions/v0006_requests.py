"""What people and programs ask of a study while its driver runs, and what came of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0006"
down_revision = "hpsearch_0005"


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.Integer()),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("handled", sa.Double()),
        sa.Column("refused", sa.Text()),
        sa.Column("trial", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_requests_studies", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_requests_study_id", "requests", ["study_id"])
