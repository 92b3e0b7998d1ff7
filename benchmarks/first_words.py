"""The time from `hpsearch run` to the first training step, and from one trial to the next.

    python benchmarks/first_words.py [--trials 12] [--quick] [--json FILE]

A study of examples/houses.py, a small model of a table on one worker, runs in a process of its own
with a local Ray. The parts of its start are in the order in which they happen. A trial comes to
train with the first step after its task is built and its data is there.

The last rows are medians over trials on the warm worker. The driver takes the end of one, commits
it with the next one, and orders that; the worker starts it up. What messages take on their way is
left out.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from tables import arguments, show

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HEARD, ORDERED = "the driver has heard something", "proposal and commit"


class Stamps:
    """When the parts of a run were over, in seconds since its process was asked for."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.all: list[tuple[str, float]] = []

    def note(self, part: str) -> None:
        """A part is over, once more or for the first time."""
        self.all.append((part, time.time() - self._began))

    def follow(self, owner: Any, name: str, part: str) -> None:
        """A part is over when a function returns."""
        call = getattr(owner, name)

        def followed(*arguments: Any, **named: Any) -> Any:
            result = call(*arguments, **named)
            self.note(part)
            return result

        setattr(owner, name, followed)


def run_here(study: str, database: str, began: float) -> None:
    """Run a study in this process, and print when its parts were over."""
    stamps = Stamps(began)
    from hpsearch.cli.main import main
    from hpsearch.cli.studies import run
    from hpsearch.running.study_run import on_ray

    stamps.note("Python, imports of the command")
    stamps.follow(run, "load", "study file, its task checked")
    import ray

    from hpsearch.running.driver.loop import Driver
    from hpsearch.running.executors.ray import RayExecutor

    stamps.note("import of Ray")
    stamps.follow(ray, "init", "start of Ray")
    stamps.follow(on_ray, "build_study", "database, brain")
    stamps.follow(RayExecutor, "_up", "start of the worker")
    stamps.follow(Driver, "_listen", HEARD)
    stamps.follow(RayExecutor, "launch", ORDERED)
    try:
        main(["run", study, "--storage", database, "--workers", "1"])
    finally:
        print(json.dumps(stamps.all))


def measured(trials: int, folder: Path) -> list[dict[str, Any]]:
    """The rows of the table."""
    shutil.copy(EXAMPLES / "houses.py", folder)
    subprocess.run([sys.executable, "houses.py"], cwd=folder, check=True, capture_output=True)
    study = yaml.safe_load((EXAMPLES / "houses.yaml").read_text())
    study["budget"] = {"trials": trials, "per_trial": {"epochs": 2}}
    study["search"] = {"sampler": "random", "pruner": "none"}
    (folder / "houses.yaml").write_text(yaml.safe_dump(study))
    database = f"sqlite:///{folder}/study.db"
    call = [sys.executable, __file__, "--here", database, repr(time.time())]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    stamps: list[tuple[str, float]] = json.loads(done.stdout.splitlines()[-1])
    cold_s, *warm_s = start_ups(database)
    rows: list[dict[str, Any]] = []
    before = heard = 0.0
    orders_s = []
    for part, end in stamps:
        if part == HEARD:
            heard = end
        elif part == ORDERED and rows[-1]["part"] == ORDERED:
            orders_s.append(end - heard)
        else:
            rows.append({"part": part, "seconds": end - before, "until": end})
            before = end
    rows.append({"part": "torch, task, data", "seconds": cold_s, "until": before + cold_s})
    then = {"next trial: proposal and commit": orders_s, "next trial: its start-up": warm_s}
    for part, times in then.items():
        rows.append({"part": part, "seconds": statistics.median(times), "until": None})
    return rows


def start_ups(database: str) -> list[float]:
    """Seconds from the order of each trial until it could train, on its worker."""
    from hpsearch.store.store import Store

    store = Store.open(database, create=False)
    trials = store.load("houses").trials
    store.close()
    return [trial.attempts[0].start_up_seconds or 0.0 for trial in trials]


def main() -> None:
    """Measure one run."""
    if sys.argv[1:2] == ["--here"]:
        run_here("houses.yaml", sys.argv[2], float(sys.argv[3]))
        return
    given = arguments(__doc__, {"trials": 4}, trials=12)
    with tempfile.TemporaryDirectory(prefix="first-words-") as folder:
        rows = measured(given.trials, Path(folder))
    show("From hpsearch run to the first step", rows, given.json)


if __name__ == "__main__":
    main()
