"""The picture of a running study."""

import io

from rich.console import Console

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.reading.status import BudgetLine, RunningAttempt, StudyStatus, StudySummary
from hpsearch.views.terminal.status import panel

SPEC = "budget: {trials: 24, per_trial: {epochs: 6}}"
DECIDED = [f"trial {n} pause: it is behind" for n in range(8)]


def drawn(
    *trials: RunningAttempt, width: int = 100, height: int = 40, name: str = "reviews"
) -> list[str]:
    limits = [
        BudgetLine("trials", 12, 24),
        BudgetLine("gpu_seconds", 1800.0, 3600.0),
        BudgetLine("wall_clock_seconds", 60.0, None),
    ]
    running, one = StudyState.RUNNING, ("maximize",)
    head = StudyHead(1, name, SPEC, one, running, None, 0.0, None, 60.0, "w", False, None)
    counts = {State.RUNNING: len(trials), State.PAUSED: 4}
    summary = StudySummary(head, counts, 1800.0, None, limits)
    status = StudyStatus(summary, 0.0, 40.0, list(trials), [])
    console = Console(file=io.StringIO(), width=width, height=height, highlight=False)
    console.print(panel(status, DECIDED, 1000.0, height))
    output = console.file
    assert isinstance(output, io.StringIO)
    return [line.rstrip() for line in output.getvalue().splitlines()]


def running(
    trial: int, gpu: float | None = None, last_decision: str | None = None
) -> RunningAttempt:
    began, resource, value, speed = 935.0, 3.0, 0.71, 0.05
    worker = f"w{trial}"
    return RunningAttempt(
        trial, 1, worker, None, None, began, resource, value, speed, gpu, last_decision
    )


def test_each_limit_and_each_running_trial_has_a_bar():
    lines = drawn(running(0, 0.93, "leads"), running(1))
    told = "\n".join(lines)
    assert "12 of 24" in told
    assert "30 min of 1 h" in told
    assert "wall clock" not in told  # nothing limits it
    (first,) = [line for line in lines if line.startswith("0  ")]
    for word in ("w0", "3 of 6", "3/min", "0.71", "1 min 5 s", "93%", "leads"):
        assert word in first
    assert [line for line in lines if line.endswith("pause: it is behind")] == [
        f"trial {n} pause: it is behind" for n in range(3, 8)
    ]


def test_a_low_terminal_shows_as_many_trials_as_it_has_lines_for():
    lines = drawn(*map(running, range(100)), height=30)
    assert len(lines) <= 30
    assert any(line.startswith("and 88 more") for line in lines)


def test_texts_of_others_cannot_control_the_terminal():
    told = "\n".join(drawn(running(0, last_decision="\x1b[2J[red]x"), name="\x1b]0;x\x07"))
    assert "\x1b" not in told
    assert "[red]x" in told


def test_a_narrow_terminal_cuts_the_last_column():
    lines = drawn(running(0, last_decision="a long story " * 9), width=90)
    assert max(map(len, lines)) <= 90
    assert any(line.endswith("…") for line in lines)
