"""The first tables. Earlier schemas belong to versions that were never released."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0009"
down_revision = None

Json = sa.JSON(none_as_null=True)


def upgrade() -> None:
    _create_studies()
    _create_trials()
    _create_attempts()
    _create_reports()
    _create_decisions()
    _create_environments()
    _create_heartbeats()
    _create_requests()


def _create_studies() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("directions", Json, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double()),
        sa.Column("active_seconds", sa.Double(), nullable=False),
        sa.Column("user_attrs", Json, nullable=False),
        sa.Column("system_attrs", Json, nullable=False),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_epoch", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_since", sa.Double()),
        sa.Column("lease_expires", sa.Double()),
        sa.Column("stop_requested", sa.Boolean(), server_default="0", nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("uid", sa.Text()),
        sa.Column("alive_at", sa.Double()),
        sa.Column("base", sa.Text()),
        sa.Column("checkpoints", sa.Text()),
        sa.Column("former_checkpoints", Json, nullable=False),
        sa.Column("step_scale", sa.Double(), nullable=False),
        sa.Column("enqueued", Json, nullable=False),
        sa.Column("memory", Json, nullable=False),
        sa.Column("race", Json),
        sa.Column("warm_start", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_studies"),
        sa.UniqueConstraint("name", name="uq_studies_name"),
        sqlite_autoincrement=True,
    )


def _create_trials() -> None:
    op.create_table(
        "trials",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("params", Json, nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("resource", sa.Double(), nullable=False),
        sa.Column("rung", sa.Integer()),
        sa.Column("error_kind", sa.Text()),
        sa.Column("error_text", sa.Text()),
        sa.Column("checkpoint", sa.Text()),
        sa.Column("gpu_seconds", sa.Double(), nullable=False),
        sa.Column("cost", sa.Double()),
        sa.Column("speed", sa.Double()),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("started", sa.Double()),
        sa.Column("ended", sa.Double()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("repeats", sa.Integer()),
        sa.Column("objective_values", Json),
        sa.Column("distributions", Json, nullable=False),
        sa.Column("user_attrs", Json, nullable=False),
        sa.Column("system_attrs", Json, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("best_checkpoint", sa.Text()),
        sa.Column("checkpoint_bytes", sa.BigInteger()),
        sa.Column("findings", Json, nullable=False),
        sa.Column("left_as", sa.Text()),
        sa.Column("forgiven", sa.Integer(), nullable=False),
        sa.Column("expected", sa.Double()),
        sa.Column("expected_deviation", sa.Double()),
        sa.Column("continues", sa.Integer()),
        sa.Column("continues_at", sa.Double()),
        sa.Column("continues_with", sa.Text()),
        sa.Column("expected_low", sa.Double()),
        sa.Column("expected_high", sa.Double()),
        sa.PrimaryKeyConstraint("study_id", "number", name="pk_trials"),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_trials_studies", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_trials_study_id_revision", "trials", ["study_id", "revision"])
    op.create_index("ix_trials_study_id_state", "trials", ["study_id", "state"])


def _of_a_trial(table: str, *key: str) -> list[Any]:
    """The columns that name a trial, the table's key and what ties a row to its trial."""
    return [
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(*key, name=f"pk_{table}"),
        sa.ForeignKeyConstraint(
            ["study_id", "trial"],
            ["trials.study_id", "trials.number"],
            name=f"fk_{table}_trials",
            ondelete="CASCADE",
        ),
    ]


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        *_of_a_trial("attempts", "study_id", "trial", "number"),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("start_resource", sa.Double(), nullable=False),
        sa.Column("reserved_gpu_seconds", sa.Double(), nullable=False),
        sa.Column("node", sa.Text()),
        sa.Column("device", sa.Text()),
        sa.Column("ended", sa.Double()),
        sa.Column("outcome", sa.Text()),
        sa.Column("gpu_seconds", sa.Double(), nullable=False),
        sa.Column("note", sa.Text()),
        sa.Column("arithmetic", Json),
        sa.Column("slowest_pace", sa.Double()),
        sa.Column("start_up_seconds", sa.Double()),
    )


def _create_reports() -> None:
    op.create_table(
        "reports",
        *_of_a_trial("reports", "study_id", "trial", "resource"),
        sa.Column("resource", sa.Double(), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("metrics", Json, nullable=False),
        sa.Column("attempt", sa.Integer()),
        sa.Column("step", sa.BigInteger()),
        sa.Column("elapsed", sa.Double()),
        sa.Column("created", sa.Double(), nullable=False),
    )


def _create_decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Integer(), nullable=False),
        *_of_a_trial("decisions", "id"),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("resource", sa.Double(), nullable=False),
        sa.Column("against", Json, nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
    )
    op.create_index("ix_decisions_study_id_trial", "decisions", ["study_id", "trial"])


def _create_environments() -> None:
    op.create_table(
        "environments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("revision", sa.Text()),
        sa.Column("packages", Json, nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("data_fingerprint", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.ForeignKeyConstraint(
            ["study_id"], ["studies.id"], name="fk_environments_studies", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_environments_study_id", "environments", ["study_id"])


def _create_heartbeats() -> None:
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


def _create_requests() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.Integer()),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", Json, nullable=False),
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
