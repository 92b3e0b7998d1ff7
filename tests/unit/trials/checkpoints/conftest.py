"""Folders of checkpoints of every kind."""

import uuid
from pathlib import Path

import pytest


@pytest.fixture(params=["local", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A trial's folder, by path or URL."""
    if request.param == "local":
        return tmp_path / "study" / "trial"
    if request.param == "file":
        return f"file://{tmp_path}/study/trial"
    return f"memory://{uuid.uuid4().hex}/trial"
