"""Draw the pictures of the documentation: a real study while it runs, and its report.

    python benchmarks/pictures.py [--out docs] [--keep FOLDER] [--quick]

`hpsearch run` searches the example `spiral`, whose program makes its own data, for some minutes. In
the middle of it, Chromium without a window opens `hpsearch dashboard` and draws the study's page,
and beside it the one that compares trials, as a phone shows it: `dashboard.png`. At the end
`hpsearch report` writes its page, and `report.png` is the top of that. Pillow reduces pictures to a
palette of colours, so that each stays below 200 kB.

Needs Chromium, and `pip install ".[dev]"`. `--keep` names a folder for the study; one that
has it already is drawn again without a search. `--quick` searches for some seconds only, which
shows that the command works.
"""

import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tables import arguments

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1000, 1440
"""Of a column of the picture, in pixels of the page."""
COLUMNS = 2
GAP, MARGIN = 40, 30
"""Rows without anything between two sections, and how many of them a column begins with."""
COLOURS = 128
MOST_BYTES = 200_000
PHONE, LIVE_HEIGHT = 390, 1440
BETWEEN = (128, 132, 140)
WAIT_MS = 120_000.0
"""How long a page may take to show what is waited for."""
LIVE_AT = 34
"""So many trials have paused or ended when a running study is drawn."""
ENDED = """(wanted) => {
    const text = document.querySelector(".facts").textContent;
    const counts = text.matchAll(/(\\d+) (?:paused|complete|pruned)/g);
    return Array.from(counts).reduce((sum, found) => sum + Number(found[1]), 0) >= wanted;
}"""

COUNTED = "SELECT count(*) FROM trials WHERE state IN ('paused', 'complete', 'pruned')"

CHANGES = {
    "budget": {"trials": 40, "per_trial": {"epochs": 9}},
    "search": {"confirm": {"top": 2, "seeds": 4}},
}
"""Of the example's study: more trials, and a winner that is confirmed."""
QUICK = {"budget": {"trials": 4, "per_trial": {"epochs": 3}}}


def started(folder: Path, *words: str, **more: Any) -> subprocess.Popen[str]:
    """Start a command in a folder, which finds the Python of this one."""
    program = "from hpsearch.cli.main import main; main()"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HPSEARCH_STORAGE": "sqlite:///hpsearch.db"}
    call = [sys.executable, "-c", program, *words]
    return subprocess.Popen(call, cwd=folder, env=environment, text=True, **more)


def end(command: subprocess.Popen[str]) -> None:
    """Wait for a command; end this one if it failed."""
    if command.wait() != 0:
        raise SystemExit(f"{command.args} ended with {command.returncode}")


def search(folder: Path, is_quick: bool) -> subprocess.Popen[str]:
    """Begin the example's study, with its changes."""
    shutil.copy(ROOT / "examples" / "spiral.py", folder)
    example = yaml.safe_load((ROOT / "examples" / "spiral.yaml").read_text(encoding="utf-8"))
    study = {**example, **(QUICK if is_quick else CHANGES)}
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return started(folder, "run", "study.yaml", "--quiet")


def await_trials(database: Path, most: int | None, study: subprocess.Popen[str] | None) -> None:
    """Wait until so many trials have paused or ended, or the study has. Ends if it failed."""
    state, trials = "", -1
    while state in ("", "running") and (most is None or trials < most):
        if study is not None and study.poll():
            end(study)
        time.sleep(0.5)
        if not database.exists():
            continue
        with closing(sqlite3.connect(database)) as connection, suppress(sqlite3.Error):
            row = connection.execute(f"SELECT state, ({COUNTED}) FROM studies").fetchone()
            state, trials = row or (state, trials)


@contextmanager
def dashboard(folder: Path) -> Iterator[str]:
    """Serve the pages of a folder's study; the address of the study."""
    with started(folder, "dashboard", "spiral", "--port", "0", stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        try:
            told = next((line for line in server.stderr if "http://" in line), "")
            link = re.match(r"http://\S+", told)
            if link is None:
                raise SystemExit("hpsearch dashboard did not start")
            yield link[0]
        finally:
            server.kill()


@contextmanager
def browsing(width: int, height: int) -> Iterator[Page]:
    """A page of a browser without a window, of so many pixels."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(WAIT_MS)
        yield page
        browser.close()


def drawn(page: Page) -> Image.Image:
    """The picture of a page once its charts are there."""
    page.wait_for_selector("html[data-charts=drawn]")
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def running_study(address: str, ended: int) -> Image.Image:
    """The page of a study once so many trials have paused or ended, and some of its trials side by
    side on a phone."""
    with browsing(WIDTH, LIVE_HEIGHT) as page:
        page.goto(address)
        page.wait_for_function(ENDED, arg=ended, polling=500)
        page.wait_for_selector("#result")
        study = drawn(page)
        best = re.search(r"trial (\d+):", page.locator(".facts").inner_text())
    others = [] if best is None or best[1] == "0" else [best[1]]
    trials = "&".join(f"trial={number}" for number in [*others, "0", "1"])
    with browsing(PHONE, LIVE_HEIGHT) as page:
        page.goto(f"{address}/compare?{trials}")
        compared = drawn(page)
    sheet = Image.new("RGB", (WIDTH + GAP + PHONE, LIVE_HEIGHT), BETWEEN)
    sheet.paste(study, (0, 0))
    sheet.paste(compared, (WIDTH + GAP, 0))
    return sheet


def top_of_report(page: Path) -> Image.Image:
    """The upper part of a report."""
    with browsing(WIDTH, COLUMNS * HEIGHT) as opened:
        opened.goto(page.as_uri())
        return in_columns(drawn(opened))


def save(picture: Image.Image, to: Path) -> None:
    """Write a picture with few colours, and say how large it is."""
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(to, optimize=True)
    size = to.stat().st_size
    print(f"wrote {to}, {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"it should have at most {MOST_BYTES / 1000:.0f} kB: lower COLOURS")


def in_columns(page: Image.Image) -> Image.Image:
    """A long page as columns side by side, each of which begins with a section."""
    shades = np.asarray(page.convert("L"))
    is_blank = (shades == shades[0, 0]).all(axis=1)
    sheet = Image.new("RGB", (COLUMNS * WIDTH, HEIGHT), page.convert("RGB").getpixel((0, 0)))
    top = 0
    for n in range(COLUMNS):
        end = last_gap(is_blank, top + HEIGHT)
        column = page.convert("RGB").crop((0, top, WIDTH, end))
        sheet.paste(column, (n * WIDTH, 0))
        top = end
    return sheet


def last_gap(is_blank: np.ndarray, most: int) -> int:
    """The row in the last wide gap of a page above a row, which leaves a margin below the gap."""
    for end in range(min(most, len(is_blank)), GAP, -1):
        if not is_blank[end : end + 1].all() and is_blank[end - GAP : end].all():
            return end - MARGIN
    return most


def main() -> None:
    """Search, and draw what there is to see."""
    given = arguments(__doc__, {}, out=ROOT / "docs", keep=Path)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        is_new = not (folder / "hpsearch.db").exists()
        studying = search(folder, given.quick) if is_new else None
        wanted = 2 if given.quick else LIVE_AT
        await_trials(folder / "hpsearch.db", wanted, studying)
        with dashboard(folder) as address:
            picture = running_study(address, wanted)
            save(picture, given.out / "dashboard.png")
        await_trials(folder / "hpsearch.db", None, studying)
        if studying is not None:
            end(studying)
        end(started(folder, "report", "spiral", "-o", "report.html", "--force"))
        save(top_of_report(folder / "report.html"), given.out / "report.png")


if __name__ == "__main__":
    main()
