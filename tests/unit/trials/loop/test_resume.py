"""A run that continues from a checkpoint goes on bit for bit as if it had never stopped."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.manifests import CheckpointError
from trials.contract import Setup
from trials.loop.training import TrainingRun
from trials.running.report_grid import budget_from
from trials.settings import OPTIMIZERS, Settings
from trials.single import main
from unit.trials.loop.test_training import Points, reports_of

HARD = {
    "dropout": 0.3,
    "batch_size": 16,
    "micro_batch": 5,
    "bucketing": True,
    "learning_rate": 3e-3,
    "schedule": "cosine",
    "label_smoothing": 0.1,
}
"""Everything on that could go differently the second time."""


def weights(run: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in run._workload.model.state_dict().items()}


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


CASES = {
    **{f"adamw after {steps}": (steps, {}) for steps in (1, 4, 5, 7)},  # five steps make an epoch
    **{name: (4, {"optimizer": name}) for name in OPTIMIZERS if name != "adamw"},
    "averaged": (4, {"ema": 0.95}),
    "averaged in fp16": (7, {"ema": 0.95, "precision": "fp16"}),
    "by layers": (4, {"layer_decay": 0.7, "schedule": "wsd"}),
    "unclipped": (4, {"max_grad_norm": None}),
}


@pytest.mark.parametrize(("stop_after", "changes"), CASES.values(), ids=CASES)
def test_resuming_after_any_step_is_bit_identical(lab, without_timings, stop_after, changes):
    task = lab.task()
    settings = {**HARD, **changes}
    data = task.prepare(settings)
    budget = {"steps": 12, "report_every": 3}
    undisturbed = task.start(lab.setup("a", budget, **settings), data)
    expected = without_timings([item for item in undisturbed if item])

    first = task.start(lab.setup("b", budget, **settings), data)
    reports, steps = [], 0
    for item in first:
        reports += [item] if item else []
        steps += item is None
        if steps == stop_after:
            break
    checkpoint = first.save()
    first.close()
    torch.manual_seed(999)  # whatever happened in between must not matter
    second = task.start(lab.setup("b", budget, resume_from=checkpoint, **settings), data)
    assert second.position.step == stop_after
    reports += [item for item in second if item]

    assert without_timings(reports) == expected
    assert equal(weights(second), weights(undisturbed))


def test_a_level_reached_but_not_reported_is_reported_after_the_resume(lab, without_timings):
    task = lab.task()
    data = task.prepare({})
    budget = {"steps": 4, "report_every": 2}
    undisturbed = [item for item in task.start(lab.setup("a", budget), data) if item]
    first = task.start(lab.setup("b", budget), data)
    steps = iter(first)
    assert [next(steps), next(steps)] == [None, None]
    second = task.start(lab.setup("b", budget, resume_from=first.save()), data)
    assert without_timings([item for item in second if item]) == without_timings(undisturbed)


def test_a_report_carries_the_state_at_exactly_its_point(lab, without_timings):
    task = lab.task()
    data = task.prepare(HARD)
    budget = {"epochs": 3}
    reports = [item for item in task.start(lab.setup("a", budget, **HARD), data) if item]
    assert reports[1].checkpoint is not None
    run = task.start(lab.setup("a", budget, resume_from=reports[1].checkpoint, **HARD), data)
    assert run.position.step == reports[1].step
    assert without_timings([item for item in run if item]) == without_timings(reports[2:])


def test_resuming_between_two_levels_of_one_step_measures_nothing_twice(lab, without_timings):
    task = lab.task()
    data = task.prepare(HARD)
    budget = {"epochs": 1, "report_every": 0.1}  # five steps an epoch: two levels a step
    reports = [item for item in task.start(lab.setup("a", budget, **HARD), data) if item]
    assert reports[2].step == reports[3].step
    first = task.start(lab.setup("b", budget, **HARD), data)
    third = [item for item, _ in zip((item for item in first if item), range(3), strict=False)][2]
    run = task.start(lab.setup("b", budget, resume_from=third.checkpoint, **HARD), data)
    assert without_timings([item for item in run if item]) == without_timings(reports[3:])


def test_a_checkpoint_of_a_finished_run_has_nothing_left_to_do(lab):
    task = lab.task()
    data = task.prepare({})
    *_, last = task.start(lab.setup("a", {"epochs": 1}), data)
    run = task.start(lab.setup("a", {"epochs": 1}, resume_from=last.checkpoint), data)
    assert run.finished == "budget used"
    assert list(run) == []


def test_early_stopping_remembers_its_count(lab):
    task = lab.task()
    settings = {"learning_rate": 1e-9, "patience": 3, "min_delta": 1.0, "batch_size": 16}
    data = task.prepare(settings)
    first = task.start(lab.setup("a", {"epochs": 10}, **settings), data)
    reports = [item for item in first if item]
    assert first.finished == "no improvement for 3 reports"
    assert len(reports) == 4
    first = task.start(lab.setup("b", {"epochs": 10}, **settings), data)
    second_report = [
        item for item, _ in zip((item for item in first if item), range(2), strict=False)
    ][1]
    again = task.start(
        lab.setup("b", {"epochs": 10}, resume_from=second_report.checkpoint, **settings), data
    )
    assert [item.resource for item in again if item] == [3.0, 4.0]
    assert again.finished == "no improvement for 3 reports"


def test_a_damaged_checkpoint_falls_back_to_the_one_before(lab, without_timings):
    task = lab.task()
    data = task.prepare(HARD)
    budget = {"epochs": 3}
    reports = [item for item in task.start(lab.setup("a", budget, **HARD), data) if item]
    damaged = lab.folder / "a" / "last" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    run = task.start(lab.setup("a", budget, resume_from=lab.folder / "a" / "last", **HARD), data)
    assert run.position.step == reports[1].step
    assert without_timings([item for item in run if item]) == without_timings(reports[2:])


def test_with_no_whole_checkpoint_left_the_error_says_so(lab):
    task = lab.task()
    data = task.prepare({})
    *_, last = task.start(lab.setup("a", {"epochs": 1}), data)
    (last.checkpoint / "state.pt").unlink()
    with pytest.raises(CheckpointError, match=r"state\.pt is missing; there is none before it"):
        task.start(lab.setup("a", {"epochs": 1}, resume_from=last.checkpoint), data)


IN_THE_BACKGROUND = "from trials.loop import saves; saves.WORTH_S = saves.SHARE = 0.0; "
"""Before the command: whatever a save costs, the next one is written by a thread."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "prepared",
    [
        pytest.param("", id="saved at once", marks=pytest.mark.thorough),
        pytest.param(IN_THE_BACKGROUND, id="saved in the background"),
    ],
)
def test_a_killed_process_resumes_to_the_same_reports_and_weights(lab, capsys, prepared):
    study = {
        "task": lab.part(),
        "settings": {**HARD, "precision": "fp32"},
        "budget": {"per_trial": {"steps": 200, "report_every": 20}},
        "seed": 11,
    }
    file = lab.folder / "study.yaml"
    file.write_text(yaml.safe_dump(study))
    assert main([str(file), "--out", str(lab.folder / "undisturbed"), "--device", "cpu"]) == 0
    expected = reports_in(capsys.readouterr().out)
    assert len(expected) == 10

    killed = lab.folder / "killed"
    program = f"{prepared}from trials.single import main; main()"
    command = [sys.executable, "-c", program, str(file), "--out", str(killed), "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        printed = process.stdout.readline() + process.stdout.readline()
        process.kill()
        printed += process.stdout.read()
    assert process.returncode == -signal.SIGKILL
    before = reports_in(printed)
    assert len(before) < 10
    assert before.items() <= expected.items()

    assert main([str(file), "--out", str(killed), "--device", "cpu", "--resume"]) == 0
    after = reports_in(capsys.readouterr().out)
    # A slow save is whole by the next report: at most one report, and the same, is told again.
    assert len(before.keys() & after.keys()) <= 1
    assert list(after.items()) == list(expected.items())[-len(after) :]
    a, b = (
        load_file(lab.folder / out / "last" / "model.safetensors")
        for out in ("undisturbed", "killed")
    )
    assert equal(a, b)


def reports_in(text):
    reports = [json.loads(line) for line in text.splitlines()]
    timings = ("samples_per_second", "tokens_per_second", "peak_memory_bytes")
    return {
        r["resource"]: {n: v for n, v in r["metrics"].items() if n not in timings} for r in reports
    }


@pytest.mark.parametrize("after", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("before", ["bf16", "fp16", "fp32"])
def test_a_run_goes_on_in_the_arithmetic_of_another_device(lab, before, after):
    task = lab.task()
    settings = {**HARD, "ema": 0.95}
    data = task.prepare(settings)
    budget = {"steps": 6, "report_every": 3}
    first = task.start(lab.setup("run", budget, precision=before, **settings), data)
    report = next(item for item in first if item)
    setup = lab.setup("run", budget, report.checkpoint, precision=after, **settings)
    resumed = task.start(setup, data)
    assert [item.step for item in resumed if item] == [6]


class Scored(Points):
    """Points with validation losses that are given, one for each report."""

    def __init__(self, losses):
        super().__init__()
        self.losses = iter(losses)

    def evaluate(self, precision):
        return {"loss": next(self.losses)}


def scored(folder, losses, resume_from=None):
    params = {"batch_size": 25}
    setup = Setup(params, 3, budget_from({"epochs": 4}), folder, resume_from=resume_from)
    return TrainingRun(Scored(losses), Settings.parse(params), setup)


def first_reports(run, count):
    reports = (item for item in run if item)
    return [next(reports) for _ in range(count)]


def damage(checkpoint):
    (checkpoint / "model.pt").write_bytes(b"damaged")


@pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "not on record"])
def test_a_best_checkpoint_that_the_run_does_not_know_is_not_named_again(tmp_path, is_damaged):
    """Training again need not come to the same values, as on a GPU."""
    first = first_reports(scored(tmp_path / "run", [3.0, 2.0, 1.0]), 3)
    if is_damaged:
        damage(first[2].checkpoint)
    source = first[2 if is_damaged else 1].checkpoint
    again = reports_of(scored(tmp_path / "run", [2.5, 2.6], source))
    assert [report.resource for report in again] == [3.0, 4.0]
    assert [report.best for report in again] == [first[1].checkpoint] * 2
    assert Checkpoints(tmp_path / "run").best == first[1].checkpoint


def test_where_the_best_checkpoint_is_lost_the_next_report_is_the_best(tmp_path):
    first = first_reports(scored(tmp_path / "run", [1.0, 2.0, 3.0]), 3)
    for report in (first[0], first[2]):
        damage(report.checkpoint)
    again = reports_of(scored(tmp_path / "run", [5.0, 6.0], first[2].checkpoint))
    assert [report.best for report in again] == [again[0].checkpoint] * 2
    assert Checkpoints(tmp_path / "run").best == again[0].checkpoint
