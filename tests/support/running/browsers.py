"""A real browser for tests: Chromium without a window, which tells what a page has become once its
scripts ran."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from support.patience import PATIENCE_S
from support.running.programs import run_program

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

WAIT_MS = 15_000
"""How long a page may go on changing, on its own clock, which stands still while it waits for
answers."""


class _Reader(HTMLParser):
    """Takes a page apart into its title and its texts."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self.inside and self.inside.pop() != tag:
            continue

    def handle_data(self, data: str) -> None:
        self.texts.append((self.inside[-1] if self.inside else "", data))


@dataclass(frozen=True)
class Page:
    """What a browser made of an address."""

    html: str
    console: str
    """What the browser said about it, among other things."""
    title: str = field(init=False)
    text: str = field(init=False)
    """All that can be read on it."""

    def __post_init__(self) -> None:
        reader = _Reader()
        reader.feed(self.html)
        titles = [text for tag, text in reader.texts if tag == "title"]
        shown = (
            text
            for tag, text in reader.texts
            if tag not in ("title", "script", "style", "noscript")
        )
        object.__setattr__(self, "title", titles[0] if titles else "")
        object.__setattr__(self, "text", "\n".join(shown))


Visit = Callable[[str], Page]


def find_chromium() -> str | None:
    """The browser's program, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def visit(chromium: str, profile: Path, address: str) -> Page:
    """Open an address in a browser that knows what its profile does, where every name means this
    machine."""
    options = [
        *(
            *("--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--disable-dev-shm-usage", "--window-size=1600,1200"),
        ),
        *(
            "--no-first-run",
            "--no-proxy-server",
            "--disable-background-networking",
            "--disable-component-update",
        ),
        *(f"--user-data-dir={profile}", "--host-resolver-rules=MAP * 127.0.0.1"),
        *("--enable-logging=stderr", f"--virtual-time-budget={WAIT_MS}", "--dump-dom"),
    ]
    command = [chromium, *options, address]
    done = run_program(command, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return Page(done.stdout, done.stderr)
