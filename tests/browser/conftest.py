"""What tests with a browser share: one that knows nothing yet."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

import browsers
from browsers import Visit


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's program.

    Skips where there is none, unless HPSEARCH_TESTS_REQUIRE_CHROMIUM=1 asks for a failure.
    """
    found = browsers.find_chromium()
    if found is None:
        if os.environ.get("HPSEARCH_TESTS_REQUIRE_CHROMIUM") == "1":
            pytest.fail("Chromium is not installed, and these tests must not be skipped")
        pytest.skip("Chromium is not installed")
    return found


@pytest.fixture
def visit(chromium: str, tmp_path: Path) -> Visit:
    """Opens an address, and gives what became of it."""
    return partial(browsers.visit, chromium, tmp_path / "profile")
