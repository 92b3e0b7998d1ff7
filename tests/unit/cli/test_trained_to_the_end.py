"""Words of `best` on trials that were not trained to the end, and refusals of `resume`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial

Run, Save = Callable[..., Any], Callable[..., None]
SPEC = """
study: flowers
task: {kind: tests_own.module:train}
space: {lr: {type: float, low: 0.0, high: 1.0}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 9}}
"""
GPU_HOURS = SPEC.replace("trials: 5", "trials: 5, gpu_hours: 0.03")


def complete(number: int, value: float, **more: Any) -> Trial:
    params = {"lr": number / 10}
    return Trial(number, State.COMPLETE, params, value=value, resource=9.0, **more)


def paused(number: int, low: float, high: float, **more: Any) -> Trial:
    given: dict[str, Any] = {"state": State.PRUNED, "left_as": State.PAUSED, **more}
    given.setdefault("checkpoint", f"/checkpoints/{number}")
    return Trial(
        **{"number": number, "params": {"lr": number / 10}, "value": low, "resource": 3.0, **given},
        expected=(low + high) / 2,
        expected_deviation=(high - low) / 4,
        expected_low=low,
        expected_high=high,
        gpu_seconds=36.0,
    )


def test_best_names_the_trial_that_may_still_win_and_the_command_for_it(
    run: Run, save: Save
) -> None:
    save("flowers", [complete(0, 0.9), paused(1, 0.7, 0.91), paused(2, 0.8, 0.95)], SPEC)
    said = run("best", "flowers").err
    assert (
        "trial 2, which stopped at 3 of 9 epochs, may still win, as may 1 other: "
        "0.875 ± 0.075 if trained to the end, and the best complete trial, 0, has 0.9; "
        "train it to the end with: hpsearch resume flowers --finish 2\n"
    ) in said


def test_a_trial_that_was_cut_short_may_win_too_and_a_study_may_have_none_complete(
    run: Run, save: Save
) -> None:
    save("flowers", [paused(0, 0.7, 0.8, left_as=State.QUEUED)], SPEC)
    said = run("best", "flowers").err
    assert "and no trial is complete; train it to the end with: hpsearch resume flowers" in said


def test_the_command_raises_a_limit_that_leaves_too_little(run: Run, save: Save) -> None:
    save("flowers", [complete(0, 0.9, gpu_seconds=60.0), paused(1, 0.8, 0.95)], GPU_HOURS)
    assert "hpsearch resume flowers --finish 1 --gpu-hours 0.08\n" in run("best").err


@pytest.mark.parametrize(
    "trial",
    [
        pytest.param(paused(1, 0.7, 0.89), id="the interval ends before the best"),
        pytest.param(paused(1, 0.8, 0.95, checkpoint=None), id="it has no checkpoint"),
        pytest.param(paused(1, 0.8, 0.95, left_as=None), id="a pruner stopped it"),
        pytest.param(
            paused(1, 0.8, 0.95, system_attrs={"constraints:size": 0.5}), id="it exceeds a limit"
        ),
    ],
)
def test_best_names_no_trial_that_cannot_win(run: Run, save: Save, trial: Trial) -> None:
    save("flowers", [complete(0, 0.9), trial], SPEC)
    assert "may still win" not in run("best", "flowers").err


def test_what_cannot_be_trained_to_its_end_is_refused(run: Run, save: Save) -> None:
    repeat = complete(2, 0.9, role=Role.CONFIRM, repeats=0)
    repeat.state = State.PRUNED
    failed = Trial(1, State.FAILED, {"lr": 0.1}, error_text="it broke")
    save("flowers", [complete(0, 0.9), failed, repeat], SPEC)
    for number, why in (
        ("7", "study flowers has no trial 7\n  it has trials 0 to 2"),
        ("0", "trial 0 of flowers is complete already"),
        ("1", "trial 1 of flowers failed"),
        ("2", "trial 2 of flowers repeats trial 0"),
    ):
        said = run("resume", "flowers", "--finish", number)
        assert (said.code, why in said.err) == (2, True), said.err
    assert run("resume", "flowers", "--finish", "-1").code == 2
    assert run("resume", "flowers", "--finish", "one").code == 2
