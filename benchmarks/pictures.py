"""Draw the picture of the README: the report of a real study, as a browser shows it.

    python benchmarks/pictures.py [--out docs/report.png] [--keep FOLDER] [--quick]

`hpsearch run` searches the example `spiral`, whose program makes its own data, for some minutes;
`hpsearch report` writes the page, and Chromium without a window draws the top of it. Pillow puts it
into columns and reduces it to a palette of colours, so that it stays below 200 kB. Needs Chromium,
and `pip install "hpsearch[plots]"`. `--keep` names a folder for the study and its page; one that
has them already is drawn again without a search. `--quick` searches for some seconds only, which
shows that the command works.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml
from PIL import Image

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1000, 1440
"""Of a column of the picture, in pixels of the page."""
COLUMNS = 2
GAP, MARGIN = 40, 30
"""Rows without anything between two sections, and how many of them a column begins with."""
COLOURS = 128
MOST_BYTES = 200_000
WAIT_MS = 15_000
"""How long the page may go on drawing, on its own clock."""

CHANGES = {
    "budget": {"trials": 40, "per_trial": {"epochs": 9}},
    "search": {"confirm": {"top": 2, "seeds": 4}},
}
"""Of the example's study: more trials, and a winner that is confirmed."""
QUICK = {"budget": {"trials": 4, "per_trial": {"epochs": 3}}}


def hpsearch(folder: Path, *words: str) -> None:
    """Run a command in a folder; end this one if it fails."""
    program = "from hpsearch.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=folder, check=False)
    if done.returncode != 0:
        raise SystemExit(f"hpsearch {' '.join(words)} ended with {done.returncode}")


def search(folder: Path, is_quick: bool) -> None:
    """Run the example's study, with its changes."""
    shutil.copy(ROOT / "examples" / "spiral.py", folder)
    example = yaml.safe_load((ROOT / "examples" / "spiral.yaml").read_text(encoding="utf-8"))
    study = {**example, **(QUICK if is_quick else CHANGES)}
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    hpsearch(folder, "run", "study.yaml", "--quiet", "--storage", "sqlite:///hpsearch.db")


def photograph(page: Path, picture: Path) -> None:
    """What a browser shows of the top of a page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as profile:
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--no-proxy-server", "--disable-background-networking"),
            *("--hide-scrollbars", f"--user-data-dir={profile}"),
            *(f"--window-size={WIDTH},{COLUMNS * HEIGHT}", f"--virtual-time-budget={WAIT_MS}"),
        ]
        call = [browser, *options, f"--screenshot={picture}", page.as_uri()]
        subprocess.run(call, check=True, capture_output=True, timeout=120)


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
    """Search, report, photograph, and say how large the picture is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "report.png")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="four short trials")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "hpsearch.db").exists():
            search(folder, arguments.quick)
        storage = ("--storage", "sqlite:///hpsearch.db")
        hpsearch(folder, "report", "spiral", "-o", "report.html", "--force", *storage)
        photograph(folder / "report.html", folder / "report.png")
        with Image.open(folder / "report.png") as picture:
            few = in_columns(picture).quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(arguments.out, optimize=True)
    size = arguments.out.stat().st_size
    print(f"wrote {arguments.out}, {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"it should have at most {MOST_BYTES / 1000:.0f} kB: lower COLOURS")


if __name__ == "__main__":
    main()
