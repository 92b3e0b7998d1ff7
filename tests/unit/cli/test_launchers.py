"""Launchers of drivers: what the commands do without one, and beside one that fails."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpsearch.cli import launchers
from hpsearch.cli.main import main
from hpsearch.cli.output import submitted_by, suggest_for, suggested
from hpsearch.domain.plugins import door
from hpsearch.domain.plugins.offers import LauncherPlugin
from hpsearch.domain.plugins.queued import QueuedJob, refuse_queued
from hpsearch.errors import StudyHeld, UserError

INSTALLED = door.installed()
JOB = QueuedJob("s", "7", "WAITING", "Full", "waits in the queue as job 7")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch):
    """Lets the launchers be these, by name, with these functions, instead of those installed."""

    def use(**functions: dict[str, Any]) -> None:
        def named(text: str) -> Any:
            launcher, _, name = text.partition(":")
            return functions[launcher].get(name, lambda *_: None)

        others = {
            name: [each for each in offers if not isinstance(each, LauncherPlugin)]
            for name, offers in INSTALLED.items()
        }
        launched = {name: [plugin_of(name)] for name in functions}
        monkeypatch.setattr(door, "installed", lambda: others | launched)
        monkeypatch.setattr(launchers, "named", named)
        monkeypatch.setattr(door, "_told", set())

    return use


def plugin_of(name: str) -> LauncherPlugin:
    functions = {each: f"{name}:{each}" for each in ("jobs", "cancel", "again")}
    return LauncherPlugin(name, "Search", "nothing:needed", inside="in_job", **functions)


def failing(error: Exception) -> dict[str, Any]:
    """A launcher whose queue cannot be asked."""

    def fail(*_: object) -> None:
        raise error

    return {"jobs": fail, "cancel": fail}


def test_without_a_launcher_nothing_waits(launched, tmp_path: Path, capsys):
    launched()
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert launchers.queued(url) == launchers.cancelled(url, "s") == []
    assert launchers.launched_by(str(tmp_path), "s", url) is None
    with pytest.raises(SystemExit) as ended:
        main(["stop", "s", "--storage", url])
    assert ended.value.code == 2
    assert "no study" in capsys.readouterr().err


def test_a_launcher_that_raises_is_told_of_once_and_others_are_asked(launched, caplog):
    again = "hpsearch b s.yaml"
    works = {"jobs": lambda *_: [JOB], "cancel": lambda *_: [JOB], "again": lambda *_: again}
    launched(a=failing(RuntimeError("no queue")), b=works)
    assert launchers.queued("sqlite:///a.db") == [JOB]
    assert launchers.cancelled("sqlite:///a.db", "s") == [JOB]
    assert launchers.launched_by(None, "s", "sqlite:///a.db") == again
    told = [each.getMessage() for each in caplog.records]
    assert told == ["launcher a is left out: RuntimeError: no queue"]


def test_what_a_launcher_refuses_is_refused_but_hides_no_other_error(
    launched, tmp_path: Path, capsys
):
    launched(a=failing(UserError("name the cluster")))
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with pytest.raises(UserError, match="name the cluster"):
        launchers.queued(url)
    with pytest.raises(SystemExit) as ended:
        main(["trials", "s", "--storage", url])
    assert ended.value.code == 2
    assert "name the cluster" not in capsys.readouterr().err


def test_a_study_that_waits_has_no_other_driver_but_that_of_its_job():
    with pytest.raises(StudyHeld, match="study s is job 7 already") as refused:
        refuse_queued([JOB])
    assert "it waits in the queue as job 7 - wait for it" in str(refused.value.hint)
    refuse_queued([])
    refuse_queued([replace(JOB, is_ours=True)])
    refuse_queued([replace(JOB, driver="6")])  # whose driver has left


def test_a_missing_study_that_waits_is_named_and_can_be_stopped(launched, tmp_path: Path, capsys):
    taken = []

    def cancel(*given: str) -> list[QueuedJob]:
        taken.append(given)
        return [JOB]

    launched(a={"jobs": lambda *_: [JOB], "cancel": cancel})
    url = f"sqlite:///{tmp_path / 'a.db'}"
    for words in (["trials", "s"], ["stop", "s"]):
        with pytest.raises(SystemExit):
            main([*words, "--storage", url])
    told = capsys.readouterr().err
    assert "study s waits in the queue as job 7 - cancel it with: hpsearch stop s" in told
    assert "cancelled: job 7" in told
    assert taken == [(url, "s")]


def test_commands_that_continue_a_launched_study_are_its_launchers(launched, monkeypatch):
    launched(send={})
    monkeypatch.delenv("HPSEARCH_SUBMIT", raising=False)
    suggest_for()
    try:
        submitted_by("hpsearch send s.yaml")
        assert suggested("see: hpsearch resume s") == "see: hpsearch send s.yaml"
        assert suggested("hpsearch resume s --trials N") == "in_job hpsearch resume s --trials N"
        launched()
        assert suggested("hpsearch resume s --trials N") == "hpsearch resume s --trials N"
    finally:
        submitted_by(None)
