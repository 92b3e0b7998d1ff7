"""The demo's own parts: a fresh start each time, a correct study file, and honest arithmetic."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.study_file import reading as spec_file
from trials import tasks
from trials.settings import TABLE

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def demo() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("demo")
    sys.path.remove(str(EXAMPLES))


def trial(number: int, state: State, reached: dict[float, float], **fields: Any) -> Trial:
    """A trial that had trained so many seconds at each resource it reached."""
    reports = {
        resource: ReportRecord(number, resource, 0.5, {"accuracy": 0.5}, elapsed=elapsed)
        for resource, elapsed in reached.items()
    }
    return Trial(number, state, {}, reports=reports, **fields)


def write_data(folder: Path, labels: list[str]) -> None:
    rows = [f"a sentence number {i} of {label},{label}" for i, label in enumerate(labels)]
    (folder / "sentences.csv").write_text("\n".join(["text,label", *rows]) + "\n")


def test_the_study_file_is_right_and_searches_at_least_sixteen_trials_by_promotion(demo, tmp_path):
    write_data(tmp_path, ["a"] * 10 + ["b"] * 10)
    study = spec_file.parse(demo.STUDY, base=tmp_path, inspect=tasks.inspect)
    assert study.task["kind"] == "text_classification"
    assert "scratch" in study.task["model"]
    assert study.budget.trials is not None
    assert study.budget.trials >= 16
    assert study.search.pruner.kind == "promotion"
    assert study.search.sampler.kind == "curve_gp"


def test_the_task_has_a_default_for_every_parameter_so_that_the_default_settings_are_all_its_own(
    demo,
):
    for name in yaml.safe_load(demo.STUDY)["space"]:
        assert TABLE[name].default is not None, name


def test_a_first_demo_starts_in_an_empty_folder(demo, tmp_path, capsys):
    demo.start_afresh(tmp_path / "demo")
    assert list((tmp_path / "demo").iterdir()) == []
    assert capsys.readouterr().out == ""


def test_every_later_demo_keeps_the_one_before_it(demo, tmp_path, capsys):
    folder = tmp_path / "demo"
    demo.start_afresh(folder)
    for content in ("first", "second"):
        (folder / "hpsearch.db").write_text(content)
        demo.start_afresh(folder)
    assert [path.name for path in folder.iterdir()] == ["earlier"]
    assert (folder / "earlier" / "1" / "hpsearch.db").read_text() == "first"
    assert (folder / "earlier" / "2" / "hpsearch.db").read_text() == "second"
    assert str(folder / "earlier" / "2") in capsys.readouterr().out


def test_pruning_saves_what_stopped_trials_would_have_needed_at_their_own_speed(demo):
    times = demo.training_time(
        [
            trial(0, State.COMPLETE, {1.0: 2.0, 9.0: 18.0}),
            trial(1, State.PRUNED, {1.0: 3.0}),  # would have needed 27 s
            trial(2, State.PAUSED, {1.0: 2.0, 3.0: 6.0}),  # would have needed 18 s
            trial(3, State.FAILED, {}),
        ],
        total=9.0,
    )
    assert times.spent == pytest.approx(18 + 3 + 6)
    assert times.full == pytest.approx(18 + 27 + 18)
    assert times.saved == pytest.approx(36)
    assert times.stopped == 2


def test_nothing_is_saved_where_every_trial_went_all_the_way(demo):
    times = demo.training_time([trial(0, State.COMPLETE, {9.0: 18.0})], total=9.0)
    assert times.saved == 0
    assert times.stopped == 0


def test_the_majority_guess_is_scored_on_the_studys_own_validation_split(demo, tmp_path):
    write_data(tmp_path, ["frequent"] * 60 + ["rare"] * 20 + ["rarer"] * 20)
    task = {**yaml.safe_load(demo.STUDY)["task"], "validation": 0.5}
    assert demo.majority_share(task, tmp_path) == pytest.approx(0.6)


def test_the_summary_compares_the_best_with_the_default_settings_and_with_guessing(demo, tmp_path):
    write_data(tmp_path, ["a"] * 40 + ["b"] * 40)
    trials = [
        trial(0, State.COMPLETE, {6.0: 16.0}, value=0.25, role=Role.DEFAULT),
        trial(1, State.COMPLETE, {6.0: 16.0}, value=0.75),
        trial(2, State.PRUNED, {1.0: 2.0}, value=0.9),  # a trial cut short is no best
    ]
    text = "\n".join(demo.summary(trials, yaml.safe_load(demo.STUDY), tmp_path))
    assert "75.0%  the best configuration" in text
    assert "25.0%  the task's default settings" in text
    assert "50.0%  always guessing" in text
    assert "pruning saved 10 of 44 seconds" in text


def test_the_commands_to_try_next_are_commands_that_there_are(demo):
    from hpsearch.cli.main import app

    commands = [
        line.split()[1]
        for line in demo.next_commands("s", "sqlite:///x")
        if line.startswith("  hpsearch ")
    ]
    registered = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    assert set(commands) >= {"status", "trials", "show", "best"}
    assert set(commands) <= registered


def test_a_program_that_is_not_on_the_path_is_told_how_to_get_there(demo, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert not any("activate" in line for line in demo.next_commands("s", "sqlite:///x"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert any("activate" in line for line in demo.next_commands("s", "sqlite:///x"))
