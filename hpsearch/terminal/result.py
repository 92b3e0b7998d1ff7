"""The result of a study that has ended: what is best, what next, how sure that is, its cost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from hpsearch.domain.lifecycle import State
from hpsearch.ranking.selection import Ranked
from hpsearch.result.study_result import StudyResult
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import StudyStatus, StudySummary
from hpsearch.terminal import tables
from hpsearch.words.certainty import caveat, gain, luck, rivals, without_effect, worth
from hpsearch.words.estimates import by_device
from hpsearch.words.numbers import cell, count, duration, number
from hpsearch.words.opening import opening


def result_tables(
    result: StudyResult,
    status: StudyStatus,
    next_commands: Sequence[tuple[str, str]],
    width: tables.Width,
) -> list[RenderableType]:
    """The sentence that opens the result, the parameters of the best configuration, the commands to
    go on with, each with what it does, and how sure it is and what it cost."""
    facts: dict[str, str] = {}
    parts: list[RenderableType] = ["".join(opening(result, status.summary))]
    if warning := without_effect(result.no_effect):
        parts.append(warning)
    if result.best is not None:
        trial = result.best.trial
        params = {name: cell(value) for name, value in trial.params.items()}
        title = f"\nbest configuration: trial {trial.number}"
        parts.append(tables.fact_table(params, width, title))
        facts |= _facts(result, result.best)
    elif result.ranked:
        front = tables.best(result.ranked, width, [metric for metric, _ in result.objectives])
        front.title = tables.heading("\nconfigurations that no other beats in all objectives")
        parts.append(front)
    if next_commands:
        parts.append(tables.fact_table(dict(next_commands), width, "\nto go on"))
    facts["cost"] = _cost(status)
    if devices := by_device(status):
        facts["by device"] = devices
    caution = caveat(result.trust, unknown=False)
    if caution is not None:
        facts["rungs"] = caution
    parts.append(tables.fact_table(facts, width, "\nin detail"))
    return parts


def _facts(result: StudyResult, best: Ranked[TrialRow]) -> dict[str, str]:
    """The facts about the best trial, by their names on the screen."""
    (metric, _), *_ = result.objectives
    facts: dict[str, str | None] = {metric: _value(best), "luck": luck(best)}
    facts["others"] = rivals(result)
    facts["gain"] = gain(result)
    if best.trial.violation > 0:
        facts["limits"] = f"exceeded by {best.trial.violation:.1%}; no trial keeps them all"
    return {name: text for name, text in facts.items() if text is not None}


def _value(best: Ranked[TrialRow]) -> str:
    """The outcome of training a trial again, and the best value that it has shown where
    that differs."""
    text, shown = worth(best), number(best.value)
    if text == shown:
        return text
    state = best.trial.state
    when = "at best in the search" if state is State.COMPLETE else f"so far, {state.value}"
    return f"{text}; {shown} {when}"


def _cost(status: StudyStatus) -> str:
    """Compute time, money, wall clock, and the number of trials."""
    used = {line.name: line.used for line in status.budget}
    compute = f"{duration(used['gpu_seconds'])} of compute time"
    if "cost" in used:
        compute += f" (cost {number(used['cost'])})"
    wall_clock = f"{duration(used['wall_clock_seconds'])} of wall clock"
    return f"{compute}, {wall_clock}: {_counts(status.summary)}"


def _counts(summary: StudySummary) -> str:
    """``24 trials, 8 complete, 16 stopped early``"""
    words = {State.COMPLETE: "complete", State.PRUNED: "stopped early", State.FAILED: "failed"}
    parts = [count(sum(summary.trials.values()), "trial")]
    for state, word in words.items():
        if summary.trials.get(state):
            parts.append(f"{summary.trials[state]} {word}")
    return ", ".join(parts)
