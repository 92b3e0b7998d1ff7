"""When torch.compile is worth its price, that it changes no result, and that a trial survives its
failure."""

from __future__ import annotations

import functools
import logging

import pytest
import torch

from trials.loop import compiling
from trials.loop.compiling import (
    COMPILE_SECONDS,
    SPEED_UP,
    CompilableLoss,
    Moment,
    verdict,
    verdict_between,
)
from trials.settings import COMPILE, Settings

CPU = torch.device("cpu")
HARD = {"dropout": 0.3, "batch_size": 16, "micro_batch": 6, "learning_rate": 3e-3}
BUDGET = {"steps": 6, "report_every": 2}
ENOUGH = COMPILE_SECONDS["cpu"] / SPEED_UP
"""Seconds of training on a CPU above which compiling pays."""


@pytest.fixture
def compiler(monkeypatch):
    """The real torch.compile without its slow last stage; a list of what it was told to compile."""
    told = []
    real = torch.compile

    def compile_without_inductor(work, **options):
        told.append(work)
        return real(work, backend="eager", **options)

    monkeypatch.setattr(torch, "compile", compile_without_inductor)
    yield told
    torch.compiler.reset()


def reports_of(lab, out, resume_from=None, stop_after=None, **params):
    """The reports of a run; after `stop_after` steps it is saved and closed, and the checkpoint
    returned instead."""
    task = lab.task()
    run = task.start(lab.setup(out, BUDGET, resume_from, **params), task.prepare(params))
    reports = []
    for item in run:
        reports += [item] if item else []
        if stop_after is not None and item is None and run.position.step == stop_after:
            reports.append(run.save())
            break
    run.close()
    return reports


def test_compiling_pays_only_when_it_saves_more_than_it_costs():
    assert not verdict(step_seconds=1.0, steps_left=ENOUGH, device="cpu").compile
    assert verdict(step_seconds=1.0, steps_left=ENOUGH + 1, device="cpu").compile
    assert verdict(step_seconds=0.5, steps_left=2 * ENOUGH + 1, device="cpu").compile


def test_a_verdict_says_why():
    assert (
        verdict(1.0, 500, "cpu").why
        == "500 steps of 1 s would save some 50 s, less than the 100 s that compiling costs"
    )
    assert (
        verdict(2.0, 1000, "cpu").why
        == "1000 steps of 2 s would save some 200 s, and compiling costs some 100 s"
    )


def test_a_device_whose_compiler_is_not_known_is_not_compiled_for():
    assert not verdict(1e6, 1e6, "mps").compile


def test_what_is_left_is_told_from_the_budget_that_the_measured_steps_used():
    warm = Moment(step=20, seconds=100.0, used=0.01)
    found = verdict_between(warm, Moment(step=40, seconds=120.0, used=0.02), "cpu")
    assert found == verdict(step_seconds=1.0, steps_left=1960, device="cpu")
    assert found.compile
    assert not verdict_between(warm, Moment(step=40, seconds=120.0, used=0.6), "cpu").compile
    assert not verdict_between(warm, Moment(step=40, seconds=120.0, used=1.2), "cpu").compile
    assert not verdict_between(warm, Moment(step=40, seconds=120.0, used=0.01), "cpu").compile


def test_auto_decides_after_the_warm_up_and_once():
    loss = CompilableLoss("auto", torch.sum, CPU)
    loss.consider(step=20, seconds=1000.0, used=0.01)  # slow first steps, which must not count
    assert loss.compiled is None
    loss.consider(step=40, seconds=1001.0, used=0.02)
    assert loss.compiled is False
    loss.consider(step=60, seconds=9000.0, used=0.03)
    assert loss.compiled is False


def test_auto_compiles_where_enough_is_left():
    loss = CompilableLoss("auto", torch.sum, CPU)
    loss.consider(step=20, seconds=20.0, used=0.01)
    loss.consider(step=40, seconds=60.0, used=0.02)
    assert loss.compiled is True


def test_the_settings_values_are_those_it_knows():
    assert set(COMPILE) == {value.value for value in compiling.Compile}
    assert Settings().compile == "never"


@pytest.mark.thorough
def test_a_compiled_run_reports_what_a_plain_one_does_and_goes_on_compiled(
    lab, without_timings, compiler
):
    plain = without_timings(reports_of(lab, "plain", **HARD))
    *before, checkpoint = reports_of(lab, "compiled", stop_after=3, compile="always", **HARD)
    after = reports_of(lab, "compiled", resume_from=checkpoint, compile="always", **HARD)
    compiled = without_timings(before + after)
    assert len(compiler) == 2, "once in each attempt"
    for (level, step, metrics), (level_2, step_2, metrics_2) in zip(plain, compiled, strict=True):
        assert (level, step) == (level_2, step_2)
        assert metrics_2.pop("compiled") == 1.0
        assert metrics_2 == pytest.approx(metrics, rel=1e-4)


def test_auto_with_a_small_budget_never_calls_the_compiler(lab, compiler, monkeypatch):
    monkeypatch.setattr("trials.loop.training.CHECK_EVERY", 1)
    reports = reports_of(lab, "run", compile="auto", **HARD)
    assert compiler == []
    assert [report.metrics["compiled"] for report in reports] == [0.0, 0.0, 0.0]


def test_auto_compiles_in_the_middle_of_a_run_that_it_pays_for(lab, compiler, monkeypatch):
    monkeypatch.setattr("trials.loop.training.CHECK_EVERY", 1)
    monkeypatch.setitem(COMPILE_SECONDS, "cpu", 0.0)
    reports = reports_of(lab, "run", compile="auto", **HARD)
    assert len(compiler) == 1
    assert [report.metrics["compiled"] for report in reports] == [1.0, 1.0, 1.0]


def test_by_default_nothing_is_compiled_and_nothing_said_of_it(lab, compiler):
    reports = reports_of(lab, "run", **HARD)
    assert compiler == []
    assert all("compiled" not in report.metrics for report in reports)


def test_a_rehearsal_is_not_compiled(lab, compiler):
    task = lab.task()
    params = {"compile": "always", "batch_size": 8}
    found = task.rehearse(lab.setup("run", BUDGET, **params), task.prepare(params))
    assert found["step_seconds"] > 0
    assert compiler == []


@pytest.mark.parametrize(
    "backward", [False, True], ids=["in the forward pass", "in the backward pass"]
)
def test_a_compiler_that_fails_costs_a_step_and_no_trial(
    lab, without_timings, monkeypatch, caplog, backward
):
    def failing(work, dynamic):
        def broken(batch):
            if not backward:
                raise RuntimeError("InvalidCxxCompiler: no compiler\nmore of it")
            loss = work(batch)
            loss.register_hook(functools.partial(_fail, "no kernel"))
            return loss

        return broken

    plain = without_timings(reports_of(lab, "plain", **HARD))
    monkeypatch.setattr(torch, "compile", failing)
    with caplog.at_level(logging.WARNING, "trials.loop.compiling"):
        reports = without_timings(reports_of(lab, "broken", compile="always", **HARD))
    assert [metrics.pop("compiled") for _, _, metrics in reports] == [0.0, 0.0, 0.0]
    assert reports == plain, "the step that failed left a trace"
    (warning,) = caplog.messages
    reason = "no kernel" if backward else "InvalidCxxCompiler: no compiler"
    assert warning == f"torch.compile failed; the trial continues without it: {reason}"


def _fail(what, _gradient):
    raise RuntimeError(what)


def test_the_real_compilers_failure_is_survived(monkeypatch):
    def no_compiler(graph, inputs):
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=no_compiler))
    loss = CompilableLoss("always", torch.sum, CPU)
    assert loss.attempt(lambda: loss.sum(torch.ones(3))).item() == 3.0
    assert loss.compiled is False


def test_memory_that_runs_out_is_no_failure_of_the_compiler():
    loss = CompilableLoss("always", torch.sum, CPU)

    def work():
        raise RuntimeError("CUDA out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        loss.attempt(work)
    assert loss.compiled is True


def test_a_loss_that_fails_by_itself_raises_its_own_error():
    loss = CompilableLoss("always", torch.sum, CPU)

    def work():
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        loss.attempt(work)


def test_several_processes_are_told_that_they_train_without_it(caplog):
    loss = CompilableLoss("always", torch.sum, CPU, processes=2)
    loss.load_state_dict({"compiled": True})
    assert loss.compiled is False
    assert caplog.messages == [
        "compile: always has no effect where several processes train one trial"
    ]


def test_what_was_decided_is_kept_in_the_checkpoint():
    loss = CompilableLoss("auto", torch.sum, CPU)
    loss.load_state_dict({"compiled": True})
    assert loss.compiled is True
    assert loss.state_dict() == {"compiled": True}
    assert loss.read() == {"compiled": 1.0}
    never = CompilableLoss("never", torch.sum, CPU)
    never.load_state_dict({"compiled": True})
    assert never.compiled is False
    assert never.read() == {}
