"""What is expected of each trial if it is trained in full, how sure that is, and what earlier
studies told a study when it was created.

Nothing is expected of the trials of before: their columns are NULL. Their studies started cold.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0004"
down_revision = "hpsearch_0003"


def upgrade() -> None:
    op.add_column("trials", sa.Column("expected", sa.Double()))
    op.add_column("trials", sa.Column("expected_deviation", sa.Double()))
    told = sa.JSON(none_as_null=True)
    op.add_column("studies", sa.Column("warm_start", told, server_default="[]", nullable=False))
