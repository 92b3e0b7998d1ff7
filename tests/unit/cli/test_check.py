"""`hpsearch check`: what it finds, what it leaves alone, and the plan it prints."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpsearch.cli.options import RunOptions
from hpsearch.cli.studies.check import check_study
from hpsearch.cli.studies.run import run_study
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import SpecError, StoreUnreachable, Unreachable, UserError
from hpsearch.running.rehearsal import first_step, first_trial
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Resources
from hpsearch.study_file.reading import load, parse
from hpsearch.views.plan import Capacity, fitting_workers
from support.files.study_files import GOOD
from support.patience import wait_until
from support.running.command_runs import is_gone
from trials import tasks
from trials.contract import Setup
from trials.running.runner import Runner

STUDY = """\
study: films
task:
  kind: text_classification
  train: train.csv
  validation: 0.2
  text: text
  label: label
  model: {scratch: {layers: 1, width: 16, vocabulary: 60}}
settings: {max_length: 16}
space:
  learning_rate: {type: float, low: 1.0e-4, high: 1.0e-2, log: true}
  batch_size: {type: categorical, choices: [4, 8]}
  optimizer: {type: categorical, choices: [adamw, sgd]}
  momentum: {type: float, low: 0.5, high: 0.9, when: {optimizer: sgd}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 12, gpu_hours: 0.5, wall_clock: 2h, per_trial: {epochs: 3}}
"""

OWN = """\
study: own
task: {kind: "CODE:train"}
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: loss, direction: minimize}
budget: {trials: 5, per_trial: {steps: 100}}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study file with its data."""
    rows = "".join(
        f"a {'good' if i % 2 else 'bad'} film {'indeed ' * (i % 5)},{i % 2}\n" for i in range(40)
    )
    (tmp_path / "train.csv").write_text(f"text,label\n{rows}")
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    return file


def database(folder: Path) -> str:
    return f"sqlite:///{folder / 'studies.db'}"


def test_a_good_study_is_rehearsed_and_its_plan_is_printed_with_what_the_data_make_one_notice(
    study, tmp_path, capsys
):
    text = STUDY.replace("validation: 0.2", "validation: train.csv").replace("16}\n", "5}\n")
    study.write_text(text)
    with (tmp_path / "train.csv").open("a") as file:
        file.write("a strange film,odd\n")
    own = "study.yaml: task.label: 1 class has one text only"
    shared = "study.yaml: task.validation: all 41 rows are in task.train too"
    cut = "study.yaml: settings.max_length: "

    check_study(study, database(tmp_path), None)
    out, said = capsys.readouterr()
    assert "no mistakes found" in said
    assert not (tmp_path / "studies.db").exists()
    for told in (
        *("maximize accuracy", "at 0.3333 and 1 of 3 epochs", "full training"),
        *("12 trials of 3 epochs = 36 epochs", "at most 0.5 hours", "at most 2 h", "parameters"),
        *("on the longest batch", "0.0001 to 0.01", "'adamw', 'sgd'", "optimizer is 'sgd'"),
    ):
        assert told in out, told
    assert own in said
    assert shared in said
    assert f"{cut}64 of 82 texts are longer than 5 tokens, and are cut" in said
    with pytest.raises(Unreachable):
        run_study(study, RunOptions(database(tmp_path), address="127.0.0.1:1"))
    said = capsys.readouterr().err
    assert shared in said, "what the values depend on is repeated"
    assert own not in said


@pytest.mark.thorough
def test_the_peak_on_the_disk_is_told_as_measured(study, tmp_path, capsys):
    study.write_text(f"{STUDY}resources: {{workers: 3, gpu: 0}}\n")
    check_study(study, database(tmp_path), None)
    (told,) = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("checkpoints")
    ]
    spec = load(study)
    task = tasks.load(spec.task, spec.base)
    setup = Setup({"max_length": 16, "batch_size": 8}, 0, trial_budget(spec), tmp_path / "run")
    runner = Runner(task, task.prepare(setup.params), setup)
    (saved,) = [report.checkpoint for report in runner.advance(1.0) if report.resource == 1.0]
    runner.close()
    assert saved is not None
    weights = (Path(saved) / "model.safetensors").stat().st_size
    whole = weights + (Path(saved) / "state.pt").stat().st_size
    one = told.partition("; ")[2].split()
    assert float(one[0]) == pytest.approx(whole / 1e3, rel=0.15)
    assert float(one[5]) == pytest.approx(weights / 1e3, rel=0.15)
    assert "at most" in told
    assert "with 3 workers" in told


IMAGES = """\
study: squares
task: {kind: image_classification, train: images.npz, validation: 0.2}
space: SPACE
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""


@pytest.mark.thorough
def test_the_peak_on_the_disk_is_that_of_the_largest_model_in_the_space(tmp_path, capsys):
    pixels = np.zeros((40, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(40) % 2)
    file, peaks = tmp_path / "squares.yaml", []
    for space in (
        "{width: {type: categorical, choices: [8, 64]}, depth: {type: int, low: 1, high: 3}}",
        "{width: {type: categorical, choices: [64]}, depth: {type: int, low: 3, high: 3}}",
    ):
        file.write_text(IMAGES.replace("SPACE", space))
        check_study(file, database(tmp_path), None)
        peaks += [
            line
            for line in capsys.readouterr().out.splitlines()
            if line.startswith(("model", "checkpoints"))
        ]
    assert peaks[:2] == peaks[2:]


def test_mistakes_in_file_and_data_are_told_together(study, tmp_path):
    study.write_text(
        STUDY.replace("label: label", "label: lable").replace("batch_size:", "batch_sise:")
    )
    with pytest.raises(SpecError) as caught:
        check_study(study, database(tmp_path), None)
    places = [problem.split(": ")[:2] for problem in caught.value.problems]
    assert places == [["study.yaml:7", "task.label"], ["study.yaml:12", "space.batch_sise"]]


def test_a_mistake_in_the_task_of_own_code_or_of_a_command_has_its_line(tmp_path):
    for task in ('{kind: command, run: "train {x"}', "{kind: 'code:train', reprot: 1}"):
        file = tmp_path / "own.yaml"
        file.write_text(OWN.replace('{kind: "CODE:train"}', task))
        with pytest.raises(SpecError, match=r"own\.yaml:2: task\.(run|reprot): "):
            check_study(file, "sqlite:///" + str(tmp_path / "h.db"), None)


def test_what_only_building_the_task_shows_has_its_line_too(study, tmp_path):
    study.write_text(
        STUDY.replace("settings: {max_length: 16}", "settings: {max_length: 16, monitor: acuracy}")
    )
    with pytest.raises(
        SpecError, match=r"study\.yaml:9: settings\.monitor: .*did you mean accuracy"
    ):
        check_study(study, database(tmp_path), None)


@pytest.mark.thorough
def test_any_metric_of_the_loop_may_be_the_objective_which_has_the_direction(study, tmp_path):
    objective = "objective: {metric: grad_norm, direction: minimize}"
    study.write_text(STUDY.replace("objective: {metric: accuracy, direction: maximize}", objective))
    check_study(study, database(tmp_path), None)


@pytest.mark.parametrize(
    ("storage", "error", "told"),
    [
        (
            "sqlite:////nowhere/at/all/x.db",
            StoreUnreachable,
            "the folder /nowhere/at/all does not exist",
        ),
        ("mysql://user:secret@host/x", UserError, "mysql are not supported"),
        ("postgresql://user:secret@127.0.0.1:1/x", StoreUnreachable, r"user:\*\*\*@127.0.0.1:1/x"),
        ("sqlite://", UserError, "in memory"),
        ("nonsense", UserError, "not given as a database URL"),
    ],
)
def test_a_database_that_cannot_be_used_is_told(study, storage, error, told):
    with pytest.raises(error, match=told) as caught:
        check_study(study, storage, None)
    assert "secret" not in str(caught.value)


def test_another_programs_database_is_refused_and_left_alone(study, tmp_path):
    file = tmp_path / "studies.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreUnreachable, match="belongs to another program"):
        check_study(study, database(tmp_path), None)
    assert file.read_bytes() == before


@pytest.mark.thorough
def test_a_name_that_is_taken_is_mentioned(study, tmp_path, capsys):
    store = Store.open(database(tmp_path))
    store.create_study(StudyRecord(id=0, name="films", spec=STUDY))
    store.close()
    check_study(study, database(tmp_path), None)
    assert "study films is already in the database" in capsys.readouterr().err


@pytest.mark.thorough
def test_an_empty_database_is_good_and_stays_empty(study, new_postgresql_url):
    url = new_postgresql_url()
    check_study(study, url, None)
    with pytest.raises(StoreUnreachable, match="there is no study database"):
        Store.open(url, create=False)


def test_a_cluster_that_does_not_answer_is_told(study, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nothing answers
        with pytest.raises(Unreachable, match="no cluster answers at"):
            check_study(study, database(tmp_path), f"127.0.0.1:{taken.getsockname()[1]}")
    with pytest.raises(UserError, match="names no host and port"):
        check_study(study, database(tmp_path), "somewhere")


CODE = """\
import os, signal, time

def train(params, trial):
    for step in range(trial.budget):
        time.sleep(0.01)
        trial.report(step + 1, {"loss": 1 / (step + 1)})

def fails(params, trial):
    raise ValueError("no such column")

def silent(params, trial):
    print("trained")

def nan(params, trial):
    trial.report(1, {"loss": float("nan")})

def other(params, trial):
    trial.report(1, {"accuracy": 0.5})

def ranked(params, trial):
    from torch import distributed
    trial.report(1, {"loss": distributed.get_world_size()})

def later(params, trial):
    time.sleep(1.5)
    for step in range(1, 100):
        trial.report(step, {"loss": 1 / step})
        if step == 3:
            raise ValueError("too late")

def killed(params, trial):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def own(folder: Path, name: str) -> Path:
    (folder / "checked_code.py").write_text(CODE)
    file = folder / "study.yaml"
    file.write_text(OWN.replace("CODE:train", f"checked_code:{name}"))
    return file


def test_own_training_code_runs_to_its_first_report(tmp_path, capfd):
    check_study(own(tmp_path, "train"), database(tmp_path), None)
    out, err = capfd.readouterr()
    assert "5 trials of 100 steps = 500 steps" in out
    assert "first report: at 1 step, after" in err
    assert "loss=1" in err
    assert "the study will take about" in err
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {"checked_code.py", "study.yaml"}


def test_the_start_is_told_from_the_training_by_further_reports(tmp_path, capfd):
    check_study(own(tmp_path, "later"), database(tmp_path), None)
    out, err = capfd.readouterr()
    (full_s,) = re.findall(r"full training +about ([0-9.]+) s", out)
    assert float(full_s) >= 1.5, "the start is there"
    (first_s,) = re.findall(r"first report: at 1 step, after ([0-9.]+) s", err)
    assert float(full_s) < 20 * float(first_s), "not a hundred times the first step"
    assert "of which" in err
    assert "were its start" in err
    assert "it then fails (error): ValueError: too late" in err


@pytest.mark.thorough
def test_code_for_several_processes_is_tried_in_a_group_of_one(tmp_path, capfd):
    file = own(tmp_path, "ranked")
    file.write_text(f"{file.read_text()}\nresources: {{processes: 2, gpu: 0}}\n")
    check_study(file, database(tmp_path), None)
    err = capfd.readouterr().err
    assert "in one process; in the study, 2 train each trial" in err
    assert "loss=1" in err


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("fails", UserError, "ValueError: no such column"),
        ("silent", UserError, "ends without a report"),
        ("nan", UserError, "has loss nan"),
        ("other", UserError, "has no loss; it has accuracy"),
        ("killed", UserError, "ended with SIGKILL, as where memory runs out"),
        ("trian", SpecError, r"study\.yaml:2: task\.kind: .*trian"),
    ],
)
def test_own_training_code_that_reports_nothing_of_use_fails(tmp_path, name, error, told):
    with pytest.raises(error, match=told):
        check_study(own(tmp_path, name), database(tmp_path), None)


def test_a_script_without_a_main_guard_is_named(tmp_path):
    (tmp_path / "checked_script.py").write_text("import sys\nsys.exit('usage: ...')\n")
    file = tmp_path / "study.yaml"
    file.write_text(OWN.replace("CODE:train", "checked_script:train"))
    with pytest.raises(UserError, match="importing checked_script:train ended") as caught:
        check_study(file, database(tmp_path), None)
    assert "__main__" in str(caught.value.hint)


def test_an_import_that_hangs_fails_within_the_stated_time(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(first_trial, "LIMIT_S", 0.5)
    (tmp_path / "checked_hang.py").write_text("import time\ntime.sleep(1000)\n")
    file = tmp_path / "study.yaml"
    file.write_text(OWN.replace("CODE:train", "checked_hang:train"))
    with pytest.raises(UserError, match=r"no report arrived within 0\.5 s"):
        check_study(file, database(tmp_path), None)
    out, err = capfd.readouterr()
    assert "for at most 0.5 s ..." in err
    assert "checked_hang:train was still being imported" in err
    assert "5 trials of 100 steps" in out


def test_an_interrupted_check_leaves_no_process_and_no_folder(tmp_path):
    code = "import os, time\nopen('process', 'w').write(str(os.getpid()) + '.')\ntime.sleep(1000)\n"
    (tmp_path / "checked_hang.py").write_text(code)
    (tmp_path / "study.yaml").write_text(OWN.replace("CODE:train", "checked_hang:train"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    line = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    line += "from hpsearch.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", line, "check", "study.yaml", "--storage", database(tmp_path)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    checking = subprocess.Popen(words, cwd=tmp_path, env=environment)
    started = tmp_path / "process"
    wait_until(lambda: started.is_file() and started.read_text().endswith("."))
    checking.send_signal(signal.SIGINT)
    assert checking.wait() != 0
    wait_until(lambda: is_gone(int(started.read_text()[:-1])))
    assert list(temporary.glob("hpsearch-*")) == []


PRINTS = """\
study: prints
task:
  kind: command
  run: "sh train.sh {x}"
  report: 'ep {resource} {accuracy}'
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 2}}
"""


def test_the_lines_of_a_command_are_shown_where_none_matches(tmp_path, capfd):
    printed = "for n in 1 2; do echo Epoch $n/2: acc_train=0.9 acc_val=0.$n; done; seq 1 50"
    (tmp_path / "train.sh").write_text(printed)
    file = tmp_path / "study.yaml"
    file.write_text(PRINTS)
    with pytest.raises(UserError, match="no line of it matches"):
        check_study(file, database(tmp_path), None)
    told = capfd.readouterr().err
    assert "\n  50\n" in told
    first = told.partition("write under task: report: ")[2].splitlines()[0]
    assert r"acc_val={accuracy}'   # reads 2 reports, at last accuracy 0.2 at 2" in first
    assert r"  or report: '\bEpoch\s*{resource}.*?\bacc_train={accuracy}'" in told


@pytest.mark.parametrize(
    ("cpu", "gpu", "machine", "workers"),
    [
        (1, "auto", Capacity(8, 0), 8),
        (2, "auto", Capacity(9, 0), 4),
        (1, "auto", Capacity(8, 2), 2),
        (1, 0, Capacity(8, 2), 8),
        (1, 0.25, Capacity(16, 2), 8),
        (1, 0.3, Capacity(16, 2), 6),
        (1, 2, Capacity(16, 4), 2),
        (4, 1, Capacity(2, 1), 0),
        (1, 1, Capacity(2, 0), 0),
        (0.1, 0, Capacity(1, 0), 10),
    ],
)
def test_as_many_workers_fit_as_cores_and_gpu_shares_allow(cpu, gpu, machine, workers):
    assert fitting_workers(Resources(cpu=cpu, gpu=gpu), machine) == workers


def test_a_worker_of_several_processes_takes_as_many_times_the_room():
    four = Resources(processes=4, cpu=2, gpu=1)
    assert four.stated_gpus == 4.0
    assert fitting_workers(four, Capacity(cpus=17, gpus=11)) == 2


def test_the_step_that_is_tried_is_the_share_of_one_process():
    processes = GOOD.replace("gpu: 0.5", "gpu: 1, processes: 3")
    assert first_step.heaviest(parse(GOOD, base=Path()))["batch_size"] == 64
    assert first_step.heaviest(parse(processes, base=Path()))["batch_size"] == 22
