"""The study that is disrupted: its files, its driver's process, and what its database records."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from hpsearch.store.store import Store
from strikes.world import Nodes, wait_for

TIMEOUTS_S = {"worker_timeout": 8, "lease": 5, "report_deadline": 60, "database_patience": 60}
"""In a study on an idle machine."""
DATABASE_TIMEOUT_S = 3
ROWS, FEATURES, STEPS = 3000, 6, 900

OVER = "('complete', 'pruned', 'failed')"
TIGHT_S = 240.0
"""A budget that ends a study."""

RESULTS = "SELECT number, state, params, value, resource, rung, seed, role, repeats FROM trials"
"""What must equal that of an undisturbed study, together with the decisions."""

DECISIONS = "SELECT trial, kind, resource FROM decisions"
JUDGED = "('pause', 'promote', 'prune', 'finish')"


def write_files(folder: Path, trials: int, workers: int, patience: int) -> Path:
    """Write a table of training data and the study file, whose timeouts are multiplied."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(0)
    names = [f"x{i}" for i in range(FEATURES)]
    lines = [",".join([*names, "label"])]
    for _ in range(ROWS):
        x = [draw.gauss(0, 1) for _ in names]
        lines.append(
            ",".join(
                [
                    *(f"{v:.4f}" for v in x),
                    "yes" if x[0] * x[1] + x[2] + draw.gauss(0, 1) > 0 else "no",
                ]
            )
        )
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    timeouts = {name: f"{patience * seconds}s" for name, seconds in TIMEOUTS_S.items()}
    per_trial = {"steps": STEPS, "report_every": STEPS // 9}
    study = {
        "study": "chaos",
        "seed": 11,
        "task": {"kind": "tabular", "train": "data.csv", "validation": 0.2, "target": "label"},
        "settings": {"bagging_fraction": 0.8},
        "space": {
            "learning_rate": {"type": "float", "low": 1e-3, "high": 1.0, "log": True},
            "num_leaves": {"type": "int", "low": 4, "high": 64, "log": True},
        },
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {
            "trials": trials,
            "gpu_hours": 5.0,
            "per_trial": per_trial,
        },
        "resources": {"workers": workers, "cpu": 1, "gpu": 0, "retries": 1000, **timeouts},
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study))
    return path


def _plain(value: Any) -> Any:
    """A value in one form for all databases: JSON is text in one and an object in another."""
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


class Struck:
    """One study and its driver.

    Args:
        name: Its name.
        file: A study file, whose name for the study is replaced.
        url: The database, as the driver reaches it.
        direct_url: The same database, over a connection that is never disrupted.
        nodes: The Ray cluster; None for the driver's own local one.
        checkpoints: The folder of checkpoints.
        tight: Whether the study should end because its budget of `TIGHT_S` is spent.
    """

    def __init__(
        self,
        name: str,
        file: Path,
        url: str,
        direct_url: str,
        nodes: Nodes | None,
        checkpoints: Path,
        *,
        tight: bool = False,
    ) -> None:
        self.name, self._url, self._direct_url = name, url, direct_url
        self._file = file.with_name(f"{name}.yaml")
        study = {**yaml.safe_load(file.read_text()), "study": name}
        if tight:
            study["budget"] |= {"trials": 100_000, "gpu_hours": TIGHT_S / 3600}
        self._file.write_text(yaml.safe_dump(study))
        self._nodes, self._checkpoints = nodes, checkpoints
        self.log = file.with_name(f"{name}.log")
        self.driver = self.start("run", str(self._file), "--checkpoints", str(checkpoints / name))
        self.resumed = 0

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start an hpsearch command in its own process."""
        environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
        environment |= {
            "HPSEARCH_STORAGE": self._url,
            "HPSEARCH_DATABASE_TIMEOUT": str(DATABASE_TIMEOUT_S),
        }
        environment |= {"OMP_NUM_THREADS": "1"}
        where = ["--address", self._nodes.address] if self._nodes else []
        command = [
            sys.executable,
            "-c",
            "from hpsearch.cli.main import main; main()",
            *arguments,
            *where,
            "--quiet",
        ]
        with self.log.open("ab") as log:
            log.write(f"\n--- {' '.join(arguments)}\n".encode())
            log.flush()
            return subprocess.Popen(
                command, cwd=self._file.parent, env=environment, stdout=log, stderr=log
            )

    def resume(self) -> None:
        """Resume it with another driver, as soon as the previous driver's lease allows."""
        self.driver = self.start("resume", self.name)
        self.resumed += 1

    def rows(self, query: str, **where: Any) -> list[tuple[Any, ...]]:
        """The rows of a query about this study; none if the study does not exist yet."""
        if (
            self._direct_url.startswith("sqlite")
            and not Path(self._direct_url.removeprefix("sqlite:///")).exists()
        ):
            return []
        conditions = " AND ".join(
            [f"study_id = (SELECT id FROM studies WHERE name = '{self.name}')", *where.values()]
        )
        order = " ORDER BY 1, 2" if " decisions" not in query else " ORDER BY id"
        with closing(Store.open(self._direct_url)) as store, store.reading() as connection:
            text = f"{query} WHERE {conditions}{order}"
            return [tuple(row) for row in connection.exec_driver_sql(text)]

    def state(self) -> tuple[Any, ...]:
        """Its state, and when its lease expires."""
        with closing(Store.open(self._direct_url)) as store, store.reading() as connection:
            query = (
                f"SELECT state, lease_expires, lease_owner FROM studies WHERE name = '{self.name}'"
            )
            return tuple(connection.exec_driver_sql(query).one())

    @property
    def finished(self) -> bool:
        """Whether it is finished."""
        return self.driver.poll() == 0

    def reports(self) -> list[tuple[Any, ...]]:
        """Every report with the attempt that made it."""
        return self.rows("SELECT trial, resource, attempt FROM reports")

    def lost(self) -> list[tuple[Any, ...]]:
        """The attempts that were lost, and why."""
        return self.rows("SELECT trial, number, note FROM attempts", which="outcome = 'lost'")

    def keep_going(self) -> bool:
        """Resume it if its driver has ended early; returns whether it is finished."""
        code = self.driver.poll()
        if code is None or code == 0:
            return code == 0
        assert code != 1, f"a driver ended with a bug: see {self.log}"
        assert code != 2, f"a driver gave up: see {self.log}"
        time.sleep(0.5 if code == 4 else 0.0)
        if self.rows("SELECT 1, 2 FROM trials"):
            self.resume()
        else:  # it ended before the study was created
            self.driver = self.start(
                "run", str(self._file), "--checkpoints", str(self._checkpoints / self.name)
            )
        return False

    def wait_for_progress(self) -> None:
        """Wait until there is a new report, or the study is finished."""
        before = set(self.reports())
        wait_for(
            f"a report of {self.name}", lambda: self.keep_going() or set(self.reports()) - before
        )

    def run_to_end(self) -> None:
        """Wait until it is finished."""
        wait_for(f"the end of {self.name}", self.keep_going)

    def spent_s(self) -> float:
        """GPU-seconds of its attempts."""
        return sum(seconds for seconds, _ in self.rows("SELECT gpu_seconds, trial FROM attempts"))

    def check(self) -> str | None:
        """What `hpsearch db check` finds; None if it finds nothing."""
        command = [
            sys.executable,
            "-c",
            "from hpsearch.cli.main import main; main()",
            "db",
            "check",
            self.name,
        ]
        ended = subprocess.run(
            [*command, "--storage", self._direct_url],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        return None if ended.returncode == 0 else ended.stderr

    def tidy_up(self) -> None:
        """Remove its files, to make room for the next one on the small disk."""
        shutil.rmtree(self._checkpoints / self.name)

    def results(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Its trials, and the decisions about them."""
        decided = self.rows(DECISIONS, which=f"kind IN {JUDGED}")
        return [tuple(map(_plain, row)) for row in self.rows(RESULTS)], decided

    def ended(self) -> dict[int, tuple[Any, ...]]:
        """The trials that have ended, with everything about them that must never change."""
        rows = self.rows(
            "SELECT number, state, value, ended, gpu_seconds FROM trials", over=f"state IN {OVER}"
        )
        attempts = [trial for trial, _ in self.rows("SELECT trial, number FROM attempts")]
        return {row[0]: (*row, attempts.count(row[0])) for row in rows}
