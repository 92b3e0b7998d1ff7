"""Draw the picture of the README: the report of a real study, as a browser shows it.

    python benchmarks/pictures.py [--out docs/report.png] [--keep FOLDER] [--quick]

`examples/reviews.py` makes the data, `hpsearch run` searches a small model on it for a minute or
two, `hpsearch report` writes the page, and Chromium without a window draws the top of it. Pillow
reduces the picture to a palette of colours, so that it stays below 200 kB. Needs Chromium, and
`pip install "hpsearch[plots]"`. `--keep` names a folder for the study and its page; one that has
them already is drawn again without a search. `--quick` searches for some seconds only, which shows
that the command works.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from PIL import Image

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1000, 1480
"""Of the window, in CSS pixels; the picture has as many."""
COLOURS = 128
MOST_BYTES = 200_000
WAIT_MS = 15_000
"""How long the page may go on drawing, on its own clock."""

STUDY = {
    "study": "reviews",
    "seed": 7,
    "task": {
        "kind": "text_classification",
        "train": "reviews.csv",
        "validation": 0.2,
        "text": "review",
        "label": "opinion",
        "model": {"scratch": {"layers": 2, "width": 64}},
    },
    "settings": {"max_length": 32, "schedule": "cosine"},
    "space": {
        "learning_rate": {"type": "float", "low": 1e-4, "high": 1e-2, "log": True},
        "batch_size": {"type": "categorical", "choices": [16, 32, 64]},
        "dropout": {"type": "float", "low": 0.0, "high": 0.3},
    },
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "budget": {"trials": 30, "per_trial": {"epochs": 9}},
    "search": {"confirm": {"top": 2, "seeds": 3}},
}
QUICK = {"budget": {"trials": 4, "per_trial": {"epochs": 1}}, "search": {}}


def hpsearch(folder: Path, *words: str) -> None:
    """Run a command in a folder; end this one if it fails."""
    program = "from hpsearch.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=folder, check=False)
    if done.returncode != 0:
        raise SystemExit(f"hpsearch {' '.join(words)} ended with {done.returncode}")


def search(folder: Path, is_quick: bool) -> None:
    """Make the data, and run the study on it."""
    script = shutil.copy(ROOT / "examples" / "reviews.py", folder)
    runpy.run_path(str(script))
    study = {**STUDY, **(QUICK if is_quick else {})}
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
            *(f"--window-size={WIDTH},{HEIGHT}", f"--virtual-time-budget={WAIT_MS}"),
        ]
        call = [browser, *options, f"--screenshot={picture}", page.as_uri()]
        subprocess.run(call, check=True, capture_output=True, timeout=120)


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
        hpsearch(folder, "report", "reviews", "-o", "report.html", "--force", *storage)
        photograph(folder / "report.html", folder / "report.png")
        with Image.open(folder / "report.png") as picture:
            few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(arguments.out, optimize=True)
    size = arguments.out.stat().st_size
    print(f"wrote {arguments.out}, {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"it should have at most {MOST_BYTES / 1000:.0f} kB: lower COLOURS")


if __name__ == "__main__":
    main()
