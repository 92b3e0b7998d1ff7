"""Whole studies from the command line: run, kill, resume, interrupt, refuse."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

import hpsearch
from hpsearch.cli.main import main
from hpsearch.domain.records import Outcome
from hpsearch.errors import StudyHeld
from hpsearch.store.store import Store
from support.patience import PATIENCE_S, wait_until
from trials.running.interruption import ENDING, TOGETHER_S

TASK = """
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def is_held(trial, epoch):
    try:
        first_trial, first_epoch = map(int, (HERE / "hold").read_text().split())
    except FileNotFoundError:
        return False
    return int(trial.folder.name.removeprefix("trial-")) >= first_trial and epoch >= first_epoch


def train(params, trial):
    start = int((trial.checkpoint / "epoch").read_text()) if trial.checkpoint else 0
    for epoch in range(start + 1, int(trial.budget) + 1):
        time.sleep(params["pause"])
        while is_held(trial, epoch):
            time.sleep(0.01)
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        if params["x"] > 0.95 and params["fragile"]:
            os.system("echo a child says that it breaks")
            raise RuntimeError(f"x = {params['x']} breaks it")
        trial.report(epoch, {"loss": (params["x"] - 0.3) ** 2 + 1 / epoch})
"""

STUDY: dict[str, Any] = {
    "study": "toy",
    "seed": 5,
    "task": {"kind": "toy_task:train"},
    "settings": {"pause": 0.02, "fragile": False},
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 14, "per_trial": {"epochs": 9}},
    "search": {"pruner": {"kind": "promotion", "pause": True}},
    "resources": {"workers": 1},
}
"""Whether its trials pause does not depend on how long this machine takes to begin them."""


class Workplace:
    """A folder with a study file and a task, and the commands run in it.

    Args:
        folder: Made where it is not there.
        ray: The environment in which commands join a Ray; without it, each starts one of its own.
        storage: The database's URL.
    """

    def __init__(
        self,
        folder: Path,
        ray: Mapping[str, str] | None = None,
        storage: str = "sqlite:///study.db",
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.environment = {"HPSEARCH_STORAGE": storage, "OMP_NUM_THREADS": "1", **(ray or {})}
        (folder / "toy_task.py").write_text(TASK)
        self.write()

    def write(self, **changes: Any) -> None:
        study = {**STUDY, **changes}
        (self.folder / "study.yaml").write_text(yaml.safe_dump(study))

    def hold(self, trial: int = 0, epoch: int = 1) -> None:
        """Let trials from this one on wait before this epoch and later ones, until `let_go`.

        However slow the machine is and whatever a test does meanwhile, the study does not come to
        its end.
        """
        draft = self.folder / "hold.draft"
        draft.write_text(f"{trial} {epoch}")
        draft.replace(self.folder / "hold")

    def let_go(self) -> None:
        """Let the trials that `hold` keeps train on."""
        (self.folder / "hold").unlink()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from hpsearch.cli.main import main; main()", *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end and return all it said."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, (
            f"{arguments} ended with {process.returncode}:\n{out}\n{err}"
        )
        assert "Traceback" not in err
        return out + err

    def ask(self, *arguments: str, code: int = 0) -> str:
        """What a command wrote to stdout, or its messages if it wrote nothing there; as `hear`."""
        said, beside = self.hear(*arguments, code=code)
        return said or beside

    def hear(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """As `call`, in this process: for what only reads, removes or is refused, to save a
        program's start.

        Returns what it wrote to stdout, and its messages.
        """
        said, beside = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            with redirect_stdout(said), redirect_stderr(beside), pytest.raises(SystemExit) as ended:
                main(arguments)
        assert (ended.value.code or 0) == code, beside.getvalue()
        return said.getvalue(), beside.getvalue()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.folder / "study.db")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def wait_until(self, query: str, process: subprocess.Popen[str]) -> None:
        """Wait until a query has a row; fail if the process ends before."""

        def came() -> bool:
            try:
                if self.rows(query):
                    return True
            except sqlite3.OperationalError:
                pass  # no tables yet
            assert process.poll() is None, process.communicate()
            return False

        wait_until(came)


@pytest.fixture
def workplace(shared_ray: Mapping[str, str], tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "work", shared_ray)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """The study, run once without any trouble, on a Ray of its own."""
    workplace = Workplace(tmp_path_factory.mktemp("undisturbed") / "work")
    workplace.call("run", "study.yaml")
    return workplace


CONFIGURATIONS = "SELECT number, state, params, value, resource, seed FROM trials ORDER BY number"


def killed_at(workplace: Workplace, when: str, trial: int, epoch: int) -> None:
    """Run the study up to an epoch of a trial, and kill its driver with SIGKILL once a query has a
    row."""
    workplace.hold(trial, epoch)
    process = workplace.start("run", "study.yaml")
    workplace.wait_until(when, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    workplace.let_go()


def test_a_study_runs_to_its_end(undisturbed):
    assert undisturbed.rows("SELECT state, reason FROM studies") == [
        ("finished", "all 14 trials have ended")
    ]
    states = [state for (state,) in undisturbed.rows("SELECT state FROM trials")]
    assert len(states) == 14
    assert set(states) == {"complete", "pruned"}
    assert undisturbed.rows("SELECT count(*) FROM attempts WHERE ended IS NULL") == [(0,)]
    assert undisturbed.rows("SELECT packages FROM environments")
    assert "no problems found" in undisturbed.ask("db", "check")


@pytest.mark.parametrize(
    ("when", "trial", "epoch"),
    [
        pytest.param(
            "SELECT 1 FROM trials WHERE number = 3 AND state = 'running'",
            3,
            1,
            id="as a trial starts",
            marks=pytest.mark.thorough,
        ),
        pytest.param("SELECT 1 FROM reports WHERE resource = 2", 0, 3, id="between two rungs"),
        pytest.param(
            "SELECT 1 FROM reports WHERE resource = 7",
            0,
            8,
            id="near the end of a trial",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_killed_driver_loses_nothing_and_repeats_nothing(
    workplace, undisturbed, when, trial, epoch
):
    killed_at(workplace, when, trial, epoch)
    finished_before = workplace.rows(
        "SELECT number, value FROM trials WHERE state IN ('complete', 'pruned', 'failed')"
    )
    running = [n for (n,) in workplace.rows("SELECT number FROM trials WHERE state = 'running'")]
    reported_before = workplace.rows("SELECT trial, max(resource) FROM reports GROUP BY trial")
    spent_before = workplace.rows("SELECT sum(gpu_seconds) FROM attempts")[0][0] or 0.0

    workplace.call("resume", "toy")

    assert workplace.rows(CONFIGURATIONS) == undisturbed.rows(CONFIGURATIONS)
    for number, value in finished_before:
        assert workplace.rows(f"SELECT value FROM trials WHERE number = {number}") == [(value,)]
    attempts = "SELECT trial, count(*) FROM attempts GROUP BY trial ORDER BY trial"
    more = dict(workplace.rows(attempts))
    for number, count in undisturbed.rows(attempts):
        assert more[number] == count + (number in running), f"trial {number}"
    interrupted = workplace.rows("SELECT trial FROM attempts WHERE outcome = 'interrupted'")
    assert interrupted == [(n,) for n in running]
    assert workplace.rows("SELECT sum(gpu_seconds) FROM attempts")[0][0] >= spent_before
    assert "no problems found" in workplace.ask("db", "check")

    for number in running:
        reported = max((r for n, r in reported_before if n == number), default=0.0)
        continued = workplace.rows(
            f"SELECT start_resource FROM attempts WHERE trial = {number} ORDER BY number DESC"
        )
        assert (reported,) in continued, (
            "it continues from its last report: less than one interval is lost"
        )


@pytest.mark.parametrize(
    "notice",
    [
        signal.SIGINT,
        signal.SIGHUP,
        *(
            pytest.param(each, marks=pytest.mark.thorough)
            for each in ENDING[1:]
            if each.name != "SIGHUP"
        ),
    ],
)
def test_a_notice_to_end_saves_everything_and_leaves_the_study_resumable(
    workplace, undisturbed, notice
):
    workplace.hold(epoch=3)
    process = workplace.start("run", "study.yaml")
    workplace.wait_until("SELECT 1 FROM reports WHERE resource = 2", process)
    process.send_signal(notice)
    workplace.let_go()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, out + err
    assert "hpsearch resume toy" in err
    assert "Traceback" not in err
    assert workplace.rows("SELECT state FROM studies") == [("interrupted",)]
    assert workplace.rows("SELECT count(*) FROM trials WHERE state = 'running'") == [(0,)]
    assert workplace.rows("SELECT count(*) FROM attempts WHERE ended IS NULL") == [(0,)]
    workplace.call("resume", "toy")
    assert workplace.rows(CONFIGURATIONS) == undisturbed.rows(CONFIGURATIONS)


@pytest.mark.thorough
def test_ctrl_c_twice_ends_at_once_and_is_still_resumable(workplace, undisturbed):
    workplace.hold(
        epoch=3
    )  # the first signal alone would not end it: a trial that is held does not save
    process = workplace.start("run", "study.yaml")
    workplace.wait_until("SELECT 1 FROM reports WHERE resource = 2", process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    heard = any("again to stop at once" in line for line in process.stderr)
    assert heard, "without this wait, the two signals could be heard as one"
    time.sleep(1.1 * TOGETHER_S)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted at once" in err
    assert "hpsearch resume toy" in err
    workplace.let_go()
    (listed,) = json.loads(workplace.ask("ls", "--format", "json"))
    assert listed["state"] == "abandoned", (
        "its trials are running on record, and nobody drives them"
    )
    workplace.call("resume", "toy")
    assert [row[:3] for row in workplace.rows(CONFIGURATIONS)] == [
        row[:3] for row in undisturbed.rows(CONFIGURATIONS)
    ]


def test_resuming_a_finished_study_changes_nothing_and_says_how_it_would_go_on(undisturbed):
    tables = ("studies", "trials", "attempts", "reports", "decisions")
    before = [undisturbed.rows(f"SELECT * FROM {table}") for table in tables]
    said = undisturbed.call("resume", "toy")
    assert "study toy has already ended: all 14 trials have ended" in said
    assert "hpsearch resume toy --trials N" in said
    assert [undisturbed.rows(f"SELECT * FROM {table}") for table in tables] == before


def test_a_name_that_exists_is_refused_with_the_command_to_resume_it(undisturbed):
    said = undisturbed.ask("run", "study.yaml", code=2)
    assert "hpsearch resume toy" in said


def test_a_study_that_another_driver_holds_is_refused_or_given_more_budget_there(workplace):
    workplace.hold()
    process = workplace.start("run", "study.yaml")
    try:
        workplace.wait_until("SELECT 1 FROM trials", process)
        said = workplace.ask("resume", "toy", code=4)
        assert f":{process.pid} since 20" in said
        said = workplace.ask("resume", "toy", "--trials", "20")
        assert "study toy goes on with trials 20" in said
        assert workplace.rows("SELECT kind, refused FROM requests") == [("budget", None)]
        assert "can only be raised" in workplace.ask("resume", "toy", "--trials", "2", code=2)
    finally:
        process.kill()
        process.communicate()


ASKER = """
import sys, time
import hpsearch
with hpsearch.create(sys.argv[1], "study.yaml") as study:
    trial = study.ask()
    trial.report(1, 0.5, checkpoint="mine")
    print(trial.number, flush=True)
    time.sleep(600)
"""


@pytest.mark.thorough
def test_a_study_is_asked_and_driven_in_turn_by_processes_that_are_killed(
    shared_ray, tmp_path, database_url
):
    workplace = Workplace(tmp_path / "work", shared_ray, database_url)
    workplace.write(
        budget={"trials": 4, "per_trial": {"epochs": 9}},
        search={"sampler": "random", "pruner": "none"},
    )
    program = [sys.executable, "-c", ASKER, database_url]
    with subprocess.Popen(
        program, cwd=workplace.folder, stdout=subprocess.PIPE, text=True
    ) as asker:
        assert asker.stdout is not None
        first = int(asker.stdout.readline())
        assert "is asked by" in workplace.ask("resume", "toy", code=4)
        asker.kill()
    workplace.hold(epoch=3)
    driver = workplace.start("resume", "toy")
    with closing(Store.open(database_url)) as store:
        wait_until(lambda: has_driven(store, first, driver))
        with pytest.raises(StudyHeld, match="is driven by"):
            hpsearch.resume(database_url, "toy")
        driver.kill()
        driver.communicate()
        workplace.let_go()
        assert "abandoned" in workplace.ask("status", "toy")
        with hpsearch.resume(database_url, "toy") as study:
            while (trial := study.ask()) is not None:
                study.tell(trial, trial.params["x"])
        trials = store.load("toy").trials
    outcomes = [attempt.outcome for attempt in trials[first].attempts]
    assert outcomes == [Outcome.INTERRUPTED, Outcome.INTERRUPTED, Outcome.COMPLETE]
    for attempt in (each for trial in trials for each in trial.attempts):
        assert attempt.ended is not None
        assert attempt.gpu_seconds == pytest.approx(attempt.ended - attempt.started)
    assert "finished" in workplace.ask("status", "toy")
    assert "no problems found" in workplace.ask("db", "check")


def has_driven(store: Store, number: int, driver: subprocess.Popen[str]) -> bool:
    """Whether a driver has reported a trial twice, which another process had asked for; fails if
    it has ended."""
    assert driver.poll() is None, driver.communicate()
    reports = store.load("toy").trials[number].reports
    return 2 in reports and reports[2].attempt == 2


def test_a_cluster_that_does_not_answer_is_never_replaced_by_a_local_one(workplace):
    said = workplace.ask("run", "study.yaml", "--address", "127.0.0.1:1", code=3)
    assert "no cluster answers at 127.0.0.1:1" in said
    assert not (workplace.folder / "study.db").exists(), "nothing is left behind"


def test_trials_that_raise_are_recorded_and_the_study_goes_on(workplace):
    workplace.write(
        settings={"pause": 0.0, "fragile": True},
        space={"x": {"type": "categorical", "choices": [0.2, 0.4, 0.99]}},
        search={"sampler": "random"},
    )
    workplace.call("run", "study.yaml")
    failed = workplace.rows("SELECT error_kind, error_text FROM trials WHERE state = 'failed'")
    assert failed
    assert set(failed) == {("error", "RuntimeError: x = 0.99 breaks it")}
    ((number,),) = workplace.rows("SELECT min(number) FROM trials WHERE state = 'failed'")
    log = workplace.ask("show", str(number), "--log")
    assert "\na child says that it breaks\n" in log
    assert "failed before its first report, error: RuntimeError: x = 0.99 breaks it" in log
    assert workplace.rows("SELECT count(*) FROM trials WHERE state = 'complete'")[0][0] >= 1
