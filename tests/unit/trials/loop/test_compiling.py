"""torch.compile changes no result, and a trial survives its failure."""

import functools
import logging

import pytest
import torch

from trials.loop.compiling import CompilableLoss

HARD = {"dropout": 0.3, "batch_size": 16, "micro_batch": 6, "learning_rate": 3e-3}
BUDGET = {"steps": 6, "report_every": 2}


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
    loss = CompilableLoss("always", torch.sum)
    assert loss.with_fallback(lambda: loss.sum(torch.ones(3))).item() == 3.0
    assert loss.compiled is False


def test_memory_that_runs_out_and_a_loss_that_fails_are_no_failures_of_the_compiler():
    loss = CompilableLoss("always", torch.sum)

    def work():
        raise RuntimeError("CUDA out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        loss.with_fallback(work)
    assert loss.compiled is True
    loss = CompilableLoss("always", torch.sum)

    def work():
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        loss.with_fallback(work)


def test_several_processes_are_told_that_they_train_without_it(caplog):
    loss = CompilableLoss("always", torch.sum, processes=2)
    assert loss.compiled is False
    assert caplog.messages == [
        "compile: always has no effect where several processes train one trial"
    ]
