"""What tests with a browser share: one that knows nothing yet."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.running import browsers
from support.running.browsers import Visit


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


@pytest.fixture(scope="module")
def people(chromium: str) -> Iterator[Any]:
    """A browser of Playwright's, for tests that do what people do. Charts of WebGL are drawn by the
    processor.

    Not for the whole session: while it is there, its thread has a running loop of asyncio.
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    drawing = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", *drawing]
        )
        yield browser
        browser.close()
