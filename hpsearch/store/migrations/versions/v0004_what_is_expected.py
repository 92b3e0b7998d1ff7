"""What is expected of each trial if it is trained in full and how sure that is, how long attempts
took to start, which search a study goes on with and what a driver had to tell about that, and what
earlier studies told a study when it was created.

Nothing is known of the trials and attempts of before: their columns are NULL. Their studies began
with the first search, and without other studies.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0004"
down_revision = "hpsearch_0003"


def upgrade() -> None:
    op.add_column("trials", sa.Column("expected", sa.Double()))
    op.add_column("trials", sa.Column("expected_deviation", sa.Double()))
    op.add_column("attempts", sa.Column("start_up_seconds", sa.Double()))
    first = sa.Column("search_version", sa.Integer(), server_default="1", nullable=False)
    op.add_column("studies", first)
    op.add_column("environments", sa.Column("notice", sa.Text()))
    told = sa.JSON(none_as_null=True)
    op.add_column("studies", sa.Column("warm_start", told, server_default="[]", nullable=False))
