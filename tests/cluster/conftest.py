"""What tests of several hosts share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.running.composition import Composition
from support.running.hosts import require_hosts


@pytest.fixture
def composition(tmp_path: Path) -> Iterator[Composition]:
    """A database on a host of its own, and hosts that are off. Skips where no hosts can be made."""
    require_hosts()
    made = Composition(tmp_path)
    yield made
    made.close()
