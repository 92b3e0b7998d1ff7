"""What a worker does with a run, and how failures are told apart."""

import weakref

import pytest
import torch

from trials.contract import Diverged
from trials.devices.memory import release_memory
from trials.running.runner import Runner, failure_of


def runner_of(lab, out="run", **params):
    task = lab.task()
    setup = lab.setup(out, {"steps": 9, "report_every": 3}, **params)
    return Runner(task, task.prepare(params), setup)


def test_a_run_advances_from_level_to_level_and_passes_one_between_two_reports(lab):
    runner = runner_of(lab)
    assert [r.resource for r in runner.advance(until=3)] == [3.0]
    assert runner.finished is None
    assert [r.resource for r in runner.advance(until=9)] == [6.0, 9.0]
    assert runner.finished == "budget used"
    assert list(runner.advance(until=99)) == []
    runner.close()
    runner = runner_of(lab)
    assert [r.resource for r in runner.advance(until=4)] == [3.0, 6.0]
    runner.close()


def test_a_run_stops_after_the_step_in_which_it_is_asked_to(lab):
    runner = runner_of(lab)
    asked = iter([False, True])
    assert list(runner.advance(9, lambda: next(asked))) == []
    saved = runner.save()
    assert saved.name == "step-2"
    assert [r.resource for r in runner.advance(9)] == [3.0, 6.0, 9.0]
    runner.close()


def test_a_run_whose_reports_stop_improving_says_so(lab):
    runner = runner_of(lab, patience=1, min_delta=100.0)
    assert [r.resource for r in runner.advance(9)] == [3.0, 6.0]
    assert runner.finished == "no improvement for 1 report"
    runner.close()


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Diverged("loss became nan at step 7"), "diverged", "loss became nan at step 7"),
        (MemoryError(), "out_of_memory", "MemoryError"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "out_of_memory",
         "torch.OutOfMemoryError: CUDA out"),
        (RuntimeError("MPS backend out of memory (MPS"), "out_of_memory",
         "RuntimeError: MPS backend out of memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"),
         "out_of_memory", "RuntimeE"),
        (RuntimeError("mat1 and mat2 shapes"), "error", "RuntimeError: mat1 and mat2 shapes"),
        (ValueError("two\nlines"), "error", "ValueError: two"),
    ],
)  # fmt: skip
def test_failures_are_told_apart(error, kind, text):
    with pytest.raises(type(error)) as caught:
        raise error
    failure = failure_of(caught.value)
    assert failure.kind == kind
    assert failure.text.startswith(text)
    assert "Traceback (most recent call last)" in failure.details


def test_batches_that_run_out_are_told_as_what_they_are():
    def run_of_a_function():
        yield next(iter([]))

    with pytest.raises(RuntimeError) as caught:
        next(run_of_a_function())
    failure = failure_of(caught.value)
    assert failure.text == "StopIteration"
    assert "yield next(iter([]))" in failure.details


def test_more_memory_than_there_is_is_told_as_that():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert failure_of(caught.value).kind == "out_of_memory"


def test_memory_is_released_without_a_gpu_too():
    class Ring:
        pass

    ring = Ring()
    ring.itself = ring
    gone = weakref.ref(ring)
    del ring
    release_memory()
    assert gone() is None
