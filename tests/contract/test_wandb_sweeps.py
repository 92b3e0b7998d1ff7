"""Sweeps of W&B by the page on imports: the scripts run as they are, and each trial measures what
its script measures under wandb's own offline mode.

By the real package, which `.ci/run` installs beside the trackers'.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contract.test_trackers import need, read, wandb_records
from hpsearch.study_file import reading
from hpsearch.study_file.models import StudySpec
from support.files.past_runs import command
from support.files.wandb_sweeps import CASES, CONFIG_ALONE, OWN_AGENT, SweepCase
from trials import tasks
from trials.contract import Goal, ProgramFailed, Report, Setup
from trials.running.report_grid import budget_from

SEED = 5
SAFE = """
def safe():
    try:
        train()
    except ZeroDivisionError:
        pass


"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, in which `python` is the Python of the tests."""
    need("wandb")
    monkeypatch.chdir(tmp_path)
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(paths))
    monkeypatch.setenv("SWEEP_HOME", "here and there")
    monkeypatch.setenv("HPSEARCH_STORAGE", f"sqlite:///{tmp_path}/hpsearch.db")
    return tmp_path


def study_of(case: SweepCase, place: Path) -> StudySpec:
    """The study that `init --from` makes of a sweep."""
    (place / "train.py").write_text(case.script)
    (place / "sweep.yaml").write_text(case.sweep)
    assert command("init", "--from", "sweep.yaml") == 0
    return reading.load(place / "study.yaml")


def trained(spec: StudySpec, params: dict[str, Any], place: Path) -> list[Report]:
    """The reports of one trial."""
    goals = tuple(Goal(each.metric, each.direction == "maximize") for each in spec.objectives)
    per_trial = {spec.budget.per_trial.unit.value: spec.budget.per_trial.total}
    setup = Setup(
        params={**spec.settings, **params},
        seed=SEED,
        budget=budget_from(per_trial),
        folder=place / "trial",
        goal=goals[0],
        goals=goals,
        log=place / "log",
    )
    run = tasks.load(spec.task, place).start(setup, None)
    try:
        return [item for item in run if isinstance(item, Report)]
    finally:
        run.close()


def under_wandb(case: SweepCase, place: Path) -> float:
    """What W&B compares the run of a configuration by, started as W&B's own agent does."""
    import yaml
    from wandb.sdk.launch.sweeps import utils
    from wandb.sdk.lib.config_util import save_config_file_from_dict

    home = place / "alone"
    rows = {name: {"value": value} for name, value in case.config.items()}
    save_config_file_from_dict(str(home / "config.yaml"), rows)
    stated = yaml.safe_load(case.sweep).get("command")
    told = utils.create_sweep_command_args({"args": rows})
    (home / "args.json").write_text(told["args_json"][0])
    told |= {"interpreter": ["python"], "program": ["train.py"], "env": ["/usr/bin/env"]}
    told |= {"args_json_file": [str(home / "args.json")]}
    words = []
    for word in map(str, utils.create_sweep_command(stated)):
        is_macro = word.startswith("${") and word.endswith("}")
        words += told[word[2:-1]] if is_macro else [word]
    if case is OWN_AGENT:  # whose agent would ask the servers
        words = ["python", "-c", "import train; train.train()"]
    variables = {
        "WANDB_MODE": "offline",
        "WANDB_SWEEP_ID": "alone",
        "WANDB_SWEEP_PARAM_PATH": str(home / "config.yaml"),
        "WANDB_DIR": str(home),
    }
    # A script that asks for the servers would wait for them.
    script = (place / "train.py").read_text()
    (place / "train.py").write_text(script.replace('mode="online"', ""))
    subprocess.run(words, env={**os.environ, **variables}, check=True, capture_output=True)
    (place / "train.py").write_text(script)
    (file,) = home.glob("wandb/offline-run-*/run-*.wandb")
    summary: dict[str, Any] = {}
    values = []
    for record in wandb_records(file):
        row = {name.replace("/", "."): value for name, value in read(record.history.item).items()}
        row = {**row, **nested(row)}
        if case.metric in row:
            values.append(row[case.metric])
        summary |= read(record.summary.update)
    found = summary.get(case.metric, values[-1] if values else None)
    if isinstance(found, dict):  # as define_metric asks for
        (found,) = found.values()
    assert isinstance(found, float | int)
    return found


def nested(row: dict[str, Any]) -> dict[str, Any]:
    """What is logged inside of dicts."""
    found = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": each for key, each in value.items()}
    return found


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", CASES)
def test_a_trial_measures_what_its_script_measures_under_wandb_itself(name, place):
    case = CASES[name]
    spec = study_of(case, place)
    reports = trained(spec, case.params, place)
    assert [each.metrics[case.metric] for each in reports[-1:]] == [under_wandb(case, place)]
    assert reports[-1].resource == spec.budget.per_trial.total
    assert len(reports) == case.reports


def test_other_parameters_measure_something_else(place):
    spec = study_of(CONFIG_ALONE, place)
    other = trained(spec, {**CONFIG_ALONE.params, "dropout": 0.5}, place)
    curve = [each.metrics["val_loss"] for each in other]
    assert curve == pytest.approx([0.1 + 0.5 + 1 / epoch for epoch in (1, 2, 3, 4)])
    assert [each.metrics["train_loss"] for each in other] == [each / 2 for each in curve]


def test_a_sweep_is_migrated_and_searched_by_the_commands_of_the_page(place, capsys):
    study_of(CONFIG_ALONE, place)
    assert command("check", "study.yaml") == 0
    # In a process of its own, which starts a Ray.
    call = "from hpsearch.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", call, "run", "study.yaml"], check=True)
    capsys.readouterr()
    assert command("trials", "config-alone", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 3
    for trial in found:
        params = trial["params"]
        penalty = 0.0 if params["optimizer"] == "adam" else 1.0
        least = params["lr"] * 10 + params["dropout"] + penalty + 1 / trial["resource"]
        assert trial["value"] == pytest.approx(least)


def test_a_run_that_never_logs_the_objective_is_an_error_that_names_what_it_logs(place):
    script = OWN_AGENT.script.replace('wandb.log({"loss"', 'wandb.log({"cost"')
    case = SweepCase(OWN_AGENT.sweep, {}, {}, "loss", script, 0)
    with pytest.raises(ProgramFailed, match="never logged loss: it logged cost"):
        trained(study_of(case, place), OWN_AGENT.params, place)


def test_a_script_that_fails_after_its_logs_has_no_result(place):
    script = CONFIG_ALONE.script + "\nraise SystemExit(3)\n"
    case = SweepCase(CONFIG_ALONE.sweep, {}, {}, "val_loss", script, 0)
    with pytest.raises(ProgramFailed, match="exit code 3 after its report at 3, before"):
        trained(study_of(case, place), CONFIG_ALONE.params, place)


def test_a_run_that_fails_is_not_a_result_even_where_its_script_goes_on(place):
    script = OWN_AGENT.script.replace("train, count=2", "safe, count=2")
    script = script.replace("for step in", "wandb.log({'loss': 1})\n        for step in")
    script = script.replace("/ (step + 1)", "/ 0")
    script = script.replace("if __name__", f"{SAFE}if __name__")
    case = SweepCase(OWN_AGENT.sweep, {}, {}, "loss", script, 0)
    with pytest.raises(ProgramFailed, match="no run of wandb has"):
        trained(study_of(case, place), OWN_AGENT.params, place)
