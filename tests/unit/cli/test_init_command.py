"""`hpsearch init --command`, and the schema that `check --schema` prints and `init` writes."""

import json
import sys
from pathlib import Path

import pytest

from hpsearch.cli.init import write_from_command, write_from_program, write_starter
from hpsearch.cli.main import main
from hpsearch.cli.options import DataOptions, StudyOptions
from hpsearch.errors import UserError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load
from hpsearch.study_file.schema import study_file_schema
from hpsearch.study_file.starters.starters import starter
from support.running.command_runs import reports_of
from trials import tasks
from trials.contract import Budget, Setup, Unit
from trials.descriptions import report_pattern
from trials.descriptions.report_pattern import ReportPattern
from trials.tasks.command.run import CommandRun


def written(folder: Path, line: str) -> StudySpec:
    path = folder / "study.yaml"
    write_from_command(path, line, StudyOptions(force=True))
    return load(path)


def test_numbers_become_parameters_and_epochs_the_budget(tmp_path):
    spec = written(tmp_path, "python train.py --lr 0.1 --epochs 3")
    assert spec.task["run"] == "python train.py --lr {lr} --epochs {budget}"
    lr = spec.space["lr"].model_dump()
    assert (lr["low"], lr["high"], lr["log"]) == (0.01, 1.0, True)
    assert (spec.budget.per_trial.unit, spec.budget.per_trial.total) == ("epochs", 3.0)
    assert spec.enqueue == [{"lr": 0.1}]


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("t --x 1e-4 --max-steps 500", "t --x {x} --max-steps {budget}"),
        ("t --x=3 --num_train_epochs=2", "t --x={x} --num_train_epochs={budget}"),
        ("t -x 3 --seed 7 --out runs/1", "t -x {x} --seed {seed} --out {folder}"),
        ("t opt.lr=0.1 name=a", "t opt.lr={opt_lr} name=a"),
        ("t --x 3 --resume last.pt", "t --x {x} --resume {resume}"),
        ("t --warmup-steps 10 --steps 99", "t --warmup-steps {warmup_steps} --steps {budget}"),
        ("t --x 3 --num-workers 4 --log-every 10", "t --x {x} --num-workers 4 --log-every 10"),
        ("t --x 3 --x 4", "t --x {x} --x 4"),
        ("torchrun --nproc-per-node 2 t.py --x 3", "torchrun --nproc-per-node 2 t.py --x {x}"),
        ("t --x 3 'a b' \"{}\" '$Y'", "t --x {x} 'a b' {{}} '$Y'"),
        ("t 3 4 --x 0.5 5", "t 3 4 --x {x} 5"),
        ("t --x -3 --y 0.5", "t --x -3 --y {y}"),
        ("t --x 3 --save model.pt", "t --x {x} --save {folder}/model.pt"),
        ("t --x 3 --out_dir=o --log-dir l", "t --x {x} --out_dir={folder} --log-dir {folder}"),
        ("t --x 3 --run_name mine --data_dir data", "t --x {x} --run_name mine --data_dir data"),
        ("t --x 3 --eval_iters 2 --decay_iters 5", "t --x {x} --eval_iters 2 --decay_iters 5")
    ]
)  # fmt: skip
def test_what_a_command_line_says(tmp_path, line, run):
    assert written(tmp_path, line).task["run"] == run


def test_ranges_suit_what_their_names_say(tmp_path):
    line = "t --batch-size 32 --dropout 0.1 --momentum 0.9 --layers 2 --width 256 --decay 0.0"
    space = written(tmp_path, line).space
    assert space["batch_size"].model_dump()["choices"] == (16, 32, 64, 128)
    ranges = {}
    for name, parameter in space.items():
        if name != "batch_size":
            values = parameter.model_dump()
            ranges[name] = (values["type"], values["low"], values["high"], values["log"])
    assert ranges == {
        "dropout": ("float", 0.0, 0.5, False),
        "momentum": ("float", 0.5, 0.99, False),
        "layers": ("int", 1, 4, False),
        "width": ("int", 64, 1024, True),
        "decay": ("float", 0.0, 0.1, False),
    }


@pytest.mark.parametrize(
    "flag",
    ["--gae-lambda .95", "--gamma .99", "--clip-coef .2", "--momentum 0.9", "--dropout 0.6",
     "--adam_beta2 0.999", "--label_smoothing 0.1", "--subsample 0.8", "--colsample_bytree 1.0",
     "--quantile 0.9", "--ema-decay 0.9999", "--quantile 0.05", "--mixup 1.0", "--beta1=1.0"],
)  # fmt: skip
def test_a_share_stays_between_0_and_1_around_its_value(tmp_path, flag):
    (parameter,) = written(tmp_path, f"t {flag}").space.values()
    values, value = parameter.model_dump(), float(flag.replace("=", " ").split()[1])
    assert 0 <= values["low"] <= value <= values["high"] <= 1
    assert values["low"] < values["high"]


@pytest.mark.parametrize(
    "name",
    ["log-interval", "num-samples", "save-every", "eval-freq", "num-workers", "port", "seed",
     "verbose", "gpu", "device", "load_epoch", "checkpoint-steps", "data_seed", "max-samples",
     "keep-last", "n-jobs", "video_length", "val-split"],
)  # fmt: skip
def test_counts_of_what_is_printed_sampled_or_saved_are_not_searched(tmp_path, name):
    assert list(written(tmp_path, f"t --lr 0.1 --{name} 3").space) == ["lr"]


TRAIN = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--random-seed", type=int, default=1)
options = parser.parse_args()
for epoch in range(options.epochs):
    print(f"epoch {epoch}: train_loss {options.lr}, val_loss {options.lr / (epoch + 1)}")
"""


def test_the_command_shows_its_seed_in_its_help_and_its_reports_in_what_it_prints(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    spec = written(tmp_path, f"{sys.executable} train.py --lr 0.1 --epochs 3")
    assert spec.task["run"].endswith("--lr {lr} --epochs {budget} --random-seed {seed}")
    (pattern,) = report_pattern.texts_of(spec.task)
    line = "epoch 0: train_loss 0.1, val_loss 0.05"
    metric = spec.objective.metric
    assert metric == "val_loss"
    assert spec.objective.direction == "minimize"
    assert ReportPattern(pattern).numbers_in(line) == {"resource": 1, metric: 0.05}


def test_a_metric_that_is_not_printed_by_its_name_is_read_from_its_part_or_is_another(tmp_path):
    (tmp_path / "train.py").write_text('for at in (1, 2, 3): print(f"Epoch: {at}, Val: 0.{at}")')
    path, line = tmp_path / "study.yaml", f"{sys.executable} train.py --lr 0.1 --epochs 3"
    write_from_command(path, line, StudyOptions(force=True, metric="accuracy"))
    assert report_pattern.texts_of(load(path).task) == [
        r"\bEpoch:\s*{resource}.*?\bVal:\s*{accuracy}"
    ]
    (tmp_path / "train.py").write_text('for at in (1, 2): print(f"epoch {at} loss 0.{at} size 3")')
    write_from_command(path, f"{line} --hidden 5", StudyOptions(force=True, metric="accuracy"))
    spec = load(path)
    assert (spec.objective.metric, spec.objective.direction) == ("loss", "minimize")


LOOPS = {
    "a loop": ("for lr in 0.1 0.01; do python t.py --lr=$lr; done", {"lr": (0.1, 0.01)}),
    "loops within loops": (
        "for lr in 0.1 0.01\ndo\n  for n in $(seq 2 2 6); do\n    python t.py --lr ${lr} \\\n"
        "      --n $n --epochs 9 > log_$n.txt 2>&1 &\n  done\ndone\nwait\n",
        {"lr": (0.1, 0.01), "n": (2, 4, 6)},
    ),
    "braces": (
        "for n in {1..3}; do for m in resnet{18,50}; do python t.py --n $n --model $m; done; done",
        {"n": (1, 2, 3), "m": ("resnet18", "resnet50")},
    ),
    "a list in a variable": (
        'lrs="0.1 0.3"\nN=3\nfor lr in $lrs; do python t.py --n $N --lr $lr; done',
        {"lr": (0.1, 0.3)},
    ),
    "an array of SLURM": (
        "#!/bin/bash\n#SBATCH --array=0-3\nmodule load cuda\nlrs=(0.1 0.2)\nsizes=(16 32)\n"
        "i=$((SLURM_ARRAY_TASK_ID / 2))\nlr=${lrs[$i]}\n"
        "srun python t.py --lr $lr --size ${sizes[$SLURM_ARRAY_TASK_ID % 2]} \\\n"
        "  --out results/${SLURM_ARRAY_TASK_ID}\n",
        {"lr": (0.1, 0.2), "sizes": (16, 32)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LOOPS)
def test_the_grids_of_plain_loops_are_choices(tmp_path, kind):
    text, grids = LOOPS[kind]
    script = tmp_path / "sweep.sh"
    script.write_text(text)
    path = tmp_path / "study.yaml"
    write_from_program(path, str(script), StudyOptions())
    spec = load(path)
    assert {name: each.model_dump()["choices"] for name, each in spec.space.items()} == grids
    assert "$" not in spec.task["run"]
    assert ("{budget}" in spec.task["run"]) == ("--epochs" in text)


@pytest.mark.parametrize(
    "line", ["t --a ${as[$i]} --b ${bs[$i]}", "a=${as[$i]}\nt --a $a --b ${bs[$i]}"]
)
def test_values_that_a_script_takes_together_are_told_of(tmp_path, capsys, line):
    text = f"as=(1 2)\nbs=(3 4)\ni=$SLURM_ARRAY_TASK_ID\n{line}"
    write_from_command(tmp_path / "study.yaml", text, StudyOptions())
    assert "together; the study combines them freely" in capsys.readouterr().err


def test_a_loop_is_a_command_too_and_its_seeds_are_the_studys(tmp_path):
    line = "for s in 1 2 3; do for lr in 1 2; do t --lr $lr --seed $s --out runs/$lr; done; done"
    spec = written(tmp_path, line)
    assert spec.task["run"] == "t --lr {lr} --seed {seed} --out {folder}"
    assert list(spec.space) == ["lr"]
    spec = written(tmp_path, "for seed in 1 2; do for lr in 1 2; do N=4 t $seed $lr; done; done")
    assert spec.task["run"] == "env N=4 t {seed} {lr}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("for f in *.csv; do t --data $f; done", "line 1: '\\*.csv'"),
        ("x=1\nfor a in 1 2; do\nif true; then t --a $a; fi\ndone", "line 3: 'if true'"),
        ("for a in 1 2; do t --a $a\nu --a $a\ndone", "line 2: 'u --a"),
        ("for a in $(cat list); do t --a $a; done", "line 1: .*cat list"),
        ("for a in 1 2; do t --a $a --b $b; done", r"\$b in '\$b' has no plain values"),
    ],
)
def test_what_is_not_plain_is_refused_by_its_line(tmp_path, text, says):
    (tmp_path / "sweep.sh").write_text(text)
    with pytest.raises(UserError, match=says):
        write_from_program(tmp_path / "study.yaml", str(tmp_path / "sweep.sh"), StudyOptions())


def test_a_script_given_as_a_command_is_told_how_it_is_read(tmp_path):
    with pytest.raises(UserError, match="no number after a flag") as refused:
        write_from_command(tmp_path / "study.yaml", "bash sweep.sh", StudyOptions())
    assert refused.value.hint == "for the loops of a script: --from sweep.sh"


def test_the_metric_of_a_scripts_command_can_be_named(tmp_path):
    (tmp_path / "sweep.sh").write_text("for a in 1 2; do t --a $a; done")
    path = tmp_path / "study.yaml"
    write_from_program(path, str(tmp_path / "sweep.sh"), StudyOptions(metric="reward"))
    assert load(path).objective.metric == "reward"


PROGRAM = """
import argparse
scale = 2.0
parser = argparse.ArgumentParser()
parser.add_argument("--clip", type=float, default=1, help="norm of gradients")
parser.add_argument("--temperature", default=1.5)
parser.add_argument("--hidden", type=int, default=200)
"""


def test_numbers_keep_the_type_that_the_program_gives_them(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    line = f"python {program} --lr 20 --clip 1 --temperature 1 --scale 3 --hidden 200"
    types = {
        name: each.model_dump()["type"] for name, each in written(tmp_path, line).space.items()
    }
    fractions = dict.fromkeys(("lr", "clip", "temperature", "scale"), "float")
    assert types == {**fractions, "hidden": "int"}


@pytest.mark.parametrize("line", ["python train.py", "t --a 'b", "t --epochs 3", "", "t --nan nan"])
def test_a_line_with_nothing_to_search_is_refused(tmp_path, line):
    with pytest.raises(UserError, match="--command"):
        write_from_command(tmp_path / "study.yaml", line, StudyOptions())
    assert not (tmp_path / "study.yaml").exists()


def test_it_is_printed_alone_says_what_is_still_to_do_and_never_replaces_a_study_file(
    tmp_path, capsys
):
    written(tmp_path, "t --x 3 --gpus 2")
    said = capsys.readouterr().err
    assert "write {budget} where the command states how long to train" in said
    assert "left as they are: gpus" in said
    assert not call()
    out, err = capsys.readouterr()
    assert json.loads(out) == SCHEMA
    assert not err
    assert call("study.yaml") == 2
    assert "--schema goes without a study file" in capsys.readouterr().err


SCHEMA = study_file_schema()


def call(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--schema", *arguments])
    return ended.value.code


def test_a_new_study_file_names_the_schema_that_stands_beside_it(tmp_path):
    write_starter(tmp_path / "mine.yaml", "tabular", DataOptions(), StudyOptions())
    first = (tmp_path / "mine.yaml").read_text().splitlines()[0]
    comment, _, name = first.partition("$schema=")
    assert comment == "# yaml-language-server: "
    assert json.loads((tmp_path / name).read_text()) == SCHEMA


def test_the_file_says_what_happens_at_rungs(tmp_path):
    kept = "Others pause if they keep their state in {folder}; if not, the"
    written(tmp_path, "t --x 3")
    text = (tmp_path / "study.yaml").read_text()
    assert "does not use {folder}, so a trial that paused would begin again:" in text
    written(tmp_path, "t --x 3 --out {folder}")
    assert kept in (tmp_path / "study.yaml").read_text()
    assert kept in starter("command")
    assert "Others pause if they keep a checkpoint (trial.save); if not," in starter("function")
    assert "Others pause, and go on if their turn comes." in starter("tabular")


APPLICATION = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="config")
def main(cfg):
    for epoch in range(cfg.trainer.max_epochs):
        print(f"epoch {epoch} val_loss {(cfg.model.lr - 0.03) ** 2 + len(cfg.model.layers)}")

main()
"""


def test_an_application_of_hydra_is_searched_as_it_is(tmp_path):
    pytest.importorskip("hydra")
    (tmp_path / "app.py").write_text(APPLICATION)
    (tmp_path / "config.yaml").write_text(
        "{model: {lr: 0.1, layers: [4]}, trainer: {max_epochs: 1}}"
    )
    sweep = "'model.lr=tag(log,interval(1e-3,1e-1))' 'model.layers=[4],[8,8]' trainer.max_epochs=3"
    spec = written(tmp_path, f"{sys.executable} app.py --multirun {sweep}")
    assert spec.space["model.lr"].model_dump()["log"] is True
    params = {"model.lr": 0.03, "model.layers": "[8,8]"}
    setup = Setup(params, 5, Budget(Unit.EPOCHS, 3.0, (3.0,)), tmp_path / "trial")
    run = tasks.load(spec.task, tmp_path).start(setup, None)
    assert isinstance(run, CommandRun)
    found = [(each.resource, each.metrics["val_loss"]) for each in reports_of(run)]
    assert found == [(1, 2), (2, 2), (3, 2)]
    assert run.close()
    (overrides,) = (tmp_path / "trial").rglob(".hydra/overrides.yaml")
    assert "model.layers=[8,8]" in overrides.read_text()
    assert not (tmp_path / "outputs").exists()
    assert not (tmp_path / "multirun").exists()
