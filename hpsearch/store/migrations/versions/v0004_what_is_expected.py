"""What is expected of each trial if it is trained in full, and how sure that is.

Nothing is known of the trials of before: their columns are NULL.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0004"
down_revision = "hpsearch_0003"


def upgrade() -> None:
    op.add_column("trials", sa.Column("expected", sa.Double()))
    op.add_column("trials", sa.Column("expected_deviation", sa.Double()))
