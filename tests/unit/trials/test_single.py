"""``python -m trials``, and what importing the package costs."""

import json
import os
import signal
import subprocess
import sys

import pytest
import yaml

from trials.single import main


@pytest.fixture
def command(lab, capsys):
    """Runs the command on a study file with changes; the exit code, stdout and stderr."""

    def run(*options, **changes):
        study = {
            "task": lab.part(),
            "settings": {"learning_rate": 5e-3},
            "budget": {"per_trial": {"epochs": 2}},
            "seed": 3,
            **changes,
        }
        file = lab.folder / "study.yaml"
        file.write_text(
            yaml.safe_dump({key: value for key, value in study.items() if value is not None})
        )
        code = main([str(file), "--out", str(lab.folder / "out"), "--device", "cpu", *options])
        return code, *capsys.readouterr()

    return run


def test_reports_are_json_lines_and_best_and_last_are_checkpoints(lab, command):
    code, out, err = command()
    assert code == 0
    reports = [json.loads(line) for line in out.splitlines()]
    assert [r["resource"] for r in reports] == [1.0, 2.0]
    keys = {"resource", "step", "elapsed", "metrics", "checkpoint", "saved_at"}
    assert reports[0].keys() == keys
    assert reports[0]["saved_at"] == 1.0
    assert err == "done: budget used\n"
    for link in ("best", "last"):
        assert (lab.folder / "out" / link / "model.safetensors").is_file()


def test_a_function_is_found_in_the_folder_that_its_file_names(tmp_path, capsys):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "elsewhere_of_the_file.py").write_text(
        "def train(params, trial):\n    trial.report(1, {'loss': 0.5})\n"
    )
    study = {
        "task": {"kind": "elsewhere_of_the_file:train"},
        "budget": {"per_trial": {"epochs": 1}},
        "base": str(tmp_path / "code"),
    }
    file = tmp_path / "best.yaml"
    file.write_text(yaml.safe_dump(study))
    assert main([str(file), "--out", str(tmp_path / "out")]) == 0
    assert '"loss": 0.5' in capsys.readouterr().out
    file.write_text(yaml.safe_dump({**study, "base": 3}))
    assert main([str(file), "--out", str(tmp_path / "out")]) == 2
    assert "base: must be the folder of the task's modules" in capsys.readouterr().err


def test_the_searchs_own_parts_are_ignored_with_a_note(command):
    budget = {"trials": 40, "gpu_hours": 1.5, "wall_clock": "2h", "per_trial": {"epochs": 1}}
    code, _, err = command(
        study="x", space={}, objective={}, search={}, resources={}, budget=budget
    )
    assert code == 0
    assert "note: a single training ignores study, space, search, resources" in err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sead": 3}, "sead: is not a part of a study file; did you mean seed?"),
        ({"task": None}, "task: must be a mapping; say what to train"),
        ({"budget": None}, "budget.per_trial: must say how far to train, such as {epochs: 3}"),
        ({"seed": -1}, "seed: must be a whole number of at least 0, not -1"),
        ({"settings": {"learning_rat": 1}},
         "settings.learning_rat: is not a setting of this task; did you mean"),
        ({"settings": [1]}, "settings: must be a mapping of settings to values"),
        ({"objective": {"metric": "accuracy", "direction": "up"}},
         "objective: must have a metric and a direction"),
        ({"objective": [{"direction": "minimize"}]},
         "objective[0]: must have a metric and a direction"),
        ({"settings": {"monitor": "grad_norm"}},
         "settings.monitor: 'grad_norm' could be better when larger or when smaller; make"),
        ({"settings": {"monitor": "acc"}}, "settings.monitor: 'acc' is not a metric of this task"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_a_line_without_a_traceback(lab, command, changes, said):
    code, out, err = command(**changes)
    assert (code, out) == (2, "")
    assert f"{lab.folder}/study.yaml: {said}" in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_or_no_yaml_is_told(lab, capsys):
    assert main([str(lab.folder / "no.yaml"), "--out", "x"]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err
    (lab.folder / "bad.yaml").write_text("a: [")
    assert main([str(lab.folder / "bad.yaml"), "--out", "x"]) == 2
    assert "line 1: not valid here" in capsys.readouterr().err


def test_a_folder_with_a_run_in_it_is_not_trained_over(lab, command):
    assert command()[0] == 0
    code, out, err = command()
    assert (code, out) == (2, "")
    assert "already holds a run; add --resume to continue it, or name another folder" in err
    assert command("--resume")[0] == 0


def test_resuming_nothing_starts_afresh_and_says_so(command):
    code, out, err = command("--resume")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "starting afresh" in err


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_objective_says_which_checkpoint_is_the_best(lab, command, direction):
    budget = {"per_trial": {"steps": 12, "report_every": 1}}
    code, out, _ = command(objective={"metric": "grad_norm", "direction": direction}, budget=budget)
    assert code == 0
    norms = {
        report["step"]: report["metrics"]["grad_norm"]
        for report in map(json.loads, out.splitlines())
    }
    best = (min if direction == "minimize" else max)(norms, key=norms.__getitem__)
    assert (lab.folder / "out" / "best").readlink().name == f"step-{best}"


@pytest.mark.parametrize(
    ("raising", "said", "traceback"),
    [
        ("Diverged('loss became nan at step 3')", "diverged: loss became nan at step 3", False),
        ("MemoryError('too much')", "out_of_memory: MemoryError: too much", False),
        ("KeyError('a slip')", "error: KeyError: 'a slip'", True),
    ],
)
def test_a_failed_training_is_told_in_a_line(lab, command, raising, said, traceback):
    text = f"from trials.contract import Diverged\ndef train(params, trial):\n    raise {raising}\n"
    (lab.folder / "failing.py").write_text(text)
    code, out, err = command(task={"kind": "failing:train"})
    assert (code, out) == (1, "")
    assert err.endswith(f"the training failed: {said}\n")
    assert ("Traceback" in err) is traceback


def test_an_interrupted_training_saves_and_continues(lab, command):
    study = {"task": lab.part(), "budget": {"per_trial": {"steps": 100_000, "report_every": 20}}}
    file = lab.folder / "long.yaml"
    file.write_text(yaml.safe_dump(study))
    words = [
        sys.executable,
        "-m",
        "trials",
        str(file),
        "--out",
        str(lab.folder / "long"),
        "--device",
        "cpu",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == 130
    assert f"interrupted; --resume continues from {lab.folder}/long/step-" in err


def test_importing_the_package_and_describing_a_task_is_cheap():
    program = (
        "import sys, trials, trials.contract, trials.settings, trials.tasks, "
        "trials.running.report_grid, trials.running.runner\n"
        "from trials.descriptions.builtin import describe\n"
        "describe('text_classification'); describe('a.b:c')\n"
        "heavy = {'torch', 'transformers', 'pandas', 'numpy', 'ray', 'hpsearch'} "
        "& set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_code_of_ones_own_measures_after_its_last_report_is_printed(
    tmp_path, monkeypatch, capfd
):
    code = "def tested(params, trial):\n    print('not a report')\n"
    code += "    trial.report(1, {'loss': 1})\n    return {'test': 2}\n"
    (tmp_path / "tested_code.py").write_text(code)
    monkeypatch.setattr(sys, "path", [*sys.path])
    study = {"task": {"kind": "tested_code:tested"}, "budget": {"per_trial": {"epochs": 1}}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    assert main([str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out")]) == 0
    said = capfd.readouterr()
    report, later = map(json.loads, said.out.splitlines())
    assert "not a report" in said.err
    assert report["metrics"] == {"loss": 1.0}
    assert later == {"metrics": {"test": 2.0}}


def test_training_code_of_ones_own_is_not_started_as_one_of_several(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_code_alone.py").write_text(
        "def train(params, trial):\n    trial.report(1, {'loss': 1.0})\n"
    )
    study = {"task": {"kind": "own_code_alone:train"}, "budget": {"per_trial": {"epochs": 1}}}
    (tmp_path / "alone.yaml").write_text(yaml.safe_dump(study))
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main([str(tmp_path / "alone.yaml"), "--out", str(tmp_path / "out")]) == 2
    assert "start it without torchrun" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
def test_a_training_whose_messages_nobody_reads_goes_on(lab):
    study = {"task": lab.part(), "space": {}, "budget": {"per_trial": {"epochs": 1}}, "seed": 3}
    (lab.folder / "alone.yaml").write_text(yaml.safe_dump(study))
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "trials", "alone.yaml", "--out", "out", "--device", "cpu"]
    done = subprocess.run(
        command, cwd=lab.folder, stdout=subprocess.PIPE, stderr=write_end, text=True, check=False
    )
    os.close(write_end)
    assert done.returncode == 0
    assert json.loads(done.stdout)["resource"] == 1.0
