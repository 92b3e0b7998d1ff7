"""The page on error messages: each is provoked, and printed as the page shows it."""

import io
import signal
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml

import hpsearch
from hpsearch.cli.main import main
from hpsearch.errors import AttemptLost, HpsearchError, Interrupted
from hpsearch.store.store import Store
from integration.test_malformed import CASES
from integration.test_run_and_resume import Workplace
from malformed import commands, good
from support.files import pages
from support.patience import PATIENCE_S

SHOWN = [block for block in pages.blocks("troubleshooting") if block.language == "text"]
BY_CASE = [block for block in SHOWN if block.marks["provoked by"] in CASES]
ON_RAY = ("a program that reports nothing", "an interruption")


def shown_for(name: str) -> pages.Block:
    """The message that is said to come from something."""
    (block,) = (block for block in SHOWN if block.marks["provoked by"] == name)
    return block


def shapes(text: str) -> list[str]:
    return [pages.shape(line) for line in text.strip().splitlines()]


def said_by(words: tuple[str, ...]) -> str:
    """What a command prints, of both kinds."""
    printed = io.StringIO()
    talking = (redirect_stdout(printed), redirect_stderr(printed))
    with talking[0], talking[1], pytest.raises(SystemExit):
        main(words)
    return printed.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("HPSEARCH_STORAGE", f"sqlite:///{tmp_path}/study.db")
    monkeypatch.setattr("hpsearch.store.connecting.engine.wait_s", lambda: 0.1)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    good(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", BY_CASE, ids=lambda block: block.marks["provoked by"])
def test_a_message_on_input_is_as_shown(block, folder):
    case = CASES[block.marks["provoked by"]]
    case.make(folder)
    shown = shapes(block.text)
    said = shapes(said_by(case.command))
    assert said[-len(shown) :] == shown  # after what can be printed all the same


def of_a_driver_on_another_machine(folder: Path) -> str:
    commands.study(folder)
    with closing(Store.open(f"sqlite:///{folder}/study.db")) as store:
        store.acquire(store.find_study("flowers").id, "ben@gpu-1:17", 45.0)
    return said_by(("resume", "flowers"))


def of_a_trial_that_went_on_elsewhere(folder: Path) -> str:
    spec = {
        "study": "asked",
        "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"trials": 3, "per_trial": {"epochs": 3}},
    }
    url = f"sqlite:///{folder}/study.db"
    with hpsearch.create(url, spec) as study, closing(Store.open(url)) as store:
        trial = study.ask()
        assert trial is not None
        with store.writing() as connection:  # another machine's process, silent for a minute
            connection.exec_driver_sql(
                "UPDATE heartbeats SET owner = 'ann@laptop:7', expires = expires - 60"
            )
        with hpsearch.create(url, spec) as other:
            again = other.ask()
            assert again is not None
            with pytest.raises(AttemptLost) as lost:
                trial.report(1, 0.5)
            other.tell(again, 1.0)
    return str(lost.value)


PROVOKED: dict[str, Callable[[Path], str]] = {
    "a driver on another machine": of_a_driver_on_another_machine,
    "a trial that went on elsewhere": of_a_trial_that_went_on_elsewhere,
}


@pytest.mark.parametrize("name", PROVOKED)
def test_a_message_on_other_processes_is_as_shown(name, folder):
    assert shapes(PROVOKED[name](folder)) == shapes(shown_for(name).text)


@pytest.mark.thorough
def test_messages_of_studies_that_end_early_are_as_shown(tmp_path, shared_ray):
    silent, interrupted = map(shown_for, ON_RAY)
    workplace = Workplace(tmp_path / "work", shared_ray)
    study = yaml.safe_load((workplace.folder / "study.yaml").read_text())
    study |= {"study": "broken", "settings": {}, "task": {"kind": "command", "run": "echo {x}"}}
    (workplace.folder / "broken.yaml").write_text(yaml.safe_dump(study))
    said = workplace.call("run", "broken.yaml", code=2)
    assert shapes(silent.text) == shapes(said)[-2:]

    workplace.hold(trial=0, epoch=2)
    workplace.write(study="script")
    process = workplace.start("run", "study.yaml")
    workplace.wait_until(
        "SELECT 1 FROM reports JOIN studies ON id = study_id AND name = 'script'", process
    )
    process.send_signal(signal.SIGINT)
    workplace.let_go()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == Interrupted.exit_code
    assert shapes(interrupted.text) == shapes(errors)[-1:]


def test_every_message_of_the_page_is_provoked_here():
    provoked = {*CASES, *PROVOKED, *ON_RAY}
    assert [block.text for block in SHOWN if block.marks["provoked by"] not in provoked] == []
    assert len(SHOWN) >= 20


def test_every_exit_code_is_on_the_page():
    codes = {HpsearchError.exit_code} | {each.exit_code for each in kinds_of(HpsearchError)}
    page = pages.read("commands")
    assert codes == {1, 2, 3, 4, 5, 130}
    assert all(f"| {code} |" in page for code in codes)


def kinds_of(error: type[HpsearchError]) -> list[type[HpsearchError]]:
    return [each for kind in error.__subclasses__() for each in (kind, *kinds_of(kind))]
