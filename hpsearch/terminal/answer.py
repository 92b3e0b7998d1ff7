"""The answer of a study that has ended: what is best, how sure that is, what it cost, what next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from hpsearch.domain.lifecycle import State
from hpsearch.ranking.selection import Ranked
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.terminal import tables
from hpsearch.words import trust
from hpsearch.words.answer import compared, gained, written
from hpsearch.words.estimates import continued, may_change
from hpsearch.words.numbers import cell, count, duration, number

MOST_NAMED = 5
"""Trials that are named of those that cannot be told from the best."""


@dataclass(frozen=True)
class StudyAnswer:
    """What a study found.

    Args:
        status: Where the study stands.
        ranked: Its best trials, best first; with several objectives those that no other beats.
        default: The trial of the default settings; None if there was none.
        rungs: How far its rungs can be trusted.
        objectives: The names of its metrics, and whether each is to be made larger or smaller.
        next_commands: The commands to go on with, and what each does.
    """

    status: StudyStatus
    ranked: Sequence[Ranked[TrialRow]]
    default: TrialRow | None
    rungs: StudyTrust
    objectives: Sequence[tuple[str, str]]
    next_commands: Sequence[tuple[str, str]]


def answer(of: StudyAnswer, width: int | None) -> list[RenderableType]:
    """The answer as a table of facts, with the parameters of the best configuration.

    Args:
        of: What the study found.
        width: Columns of the terminal; None if the output goes elsewhere.
    """
    facts = _nothing_found(of)
    parts: list[RenderableType] = []
    if of.ranked and len(of.objectives) == 1:
        best = of.ranked[0]
        params = {name: cell(value) for name, value in best.trial.params.items()}
        title = f"\nbest configuration: trial {best.trial.number}"
        parts.append(tables.fact_table(params, width, title))
        facts = _of_best(of)
    elif of.ranked:
        front = tables.best(of.ranked, width, [metric for metric, _ in of.objectives])
        front.title = tables.heading("\nconfigurations that no other beats in all objectives")
        parts.append(front)
        facts = {}
    facts["cost"] = _cost(of.status)
    if caution := trust.caveat(of.rungs, in_full=False):
        facts["rungs"] = caution
    parts.append(tables.fact_table(facts, width, "\nhow good it is" if of.ranked else None))
    if of.next_commands:
        parts.append(tables.fact_table(dict(of.next_commands), width, "\nto go on"))
    return parts


def _nothing_found(of: StudyAnswer) -> dict[str, str]:
    return {"best": "no trial has shown a value"} if not of.ranked else {}


def _of_best(of: StudyAnswer) -> dict[str, str]:
    """What is known of the best trial, by its name on the screen."""
    best = of.ranked[0]
    metric, direction = of.objectives[0]
    facts = {metric: _value(best), "luck": luck(best)}
    if told := others(of.ranked):
        facts["others"] = told
    if best.trial.continues is not None:
        facts["training"] = f"it {continued(best.trial)}, under other parameters"
    more = gained(best, of.default, direction)
    if more is not None and of.default is not None:
        facts["gain"] = compared(more, of.default)
        if best.trial.number == of.default.number:
            facts["gain"] = "none: these are the default settings"
    if best.trial.violation > 0:
        facts["limits"] = f"exceeded by {best.trial.violation:.1%}; no trial keeps them all"
    return facts


def _value(best: Ranked[TrialRow]) -> str:
    """The value that it counts by, and the one that it has shown where that is another."""
    text = written(best)
    if best.confirmed is not None:
        return f"{text}, 90% interval; {number(best.value)} in the search"
    if may_change(best.trial):
        state = best.trial.state
        when = "in its one training" if state is State.COMPLETE else f"so far, {state.value}"
        return f"{text} (90%); {number(best.value)} {when}"
    return text


def luck(best: Ranked[TrialRow]) -> str:
    """What is known of how far the value of a trial is luck."""
    if best.trial.continues is not None:
        return "trained once: what continues another trial is not repeated with other seeds"
    if best.confirmed is None:
        return "trained once: part of its value may be luck; search.confirm measures that"
    if best.confirmed.runs < 2:
        return "repeated once with another seed: too little to say how far it varies"
    return "trained with other seeds, so that the luck of the search is not in this value"


def others(ranked: Sequence[Ranked[TrialRow]]) -> str:
    """The trials that cannot be told from the best one, and those of which it is not known yet;
    empty where there are none."""
    tied = [each.trial.number for each in ranked[1:] if each.tied]
    unknown = [each.trial.number for each in ranked if each.unknown]
    parts = [f"{_trials(tied)} cannot be told from it"] if tied else []
    if unknown:
        parts.append(f"{_trials(unknown)}: not known yet, trained too little to tell")
    return "; ".join(parts)


def _trials(numbers: Sequence[int]) -> str:
    """``trial 3``, ``trials 3, 8``, ``trials 3, 8 and 4 more``"""
    named = ", ".join(str(number) for number in numbers[:MOST_NAMED])
    more = len(numbers) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"trial{'' if len(numbers) == 1 else 's'} {named}{rest}"


def _cost(status: StudyStatus) -> str:
    """Compute time, money, wall clock, and what came of the trials."""
    used = {line.name: line.used for line in status.budget}
    parts = [f"{duration(used['gpu_seconds'])} of compute time"]
    if "cost" in used:
        parts[0] += f" (cost {number(used['cost'])})"
    parts.append(f"{duration(used['wall_clock_seconds'])} of wall clock")
    return f"{', '.join(parts)}: {_counts(status.summary)}"


def _counts(summary: StudySummary) -> str:
    """``24 trials, 8 complete, 16 stopped early``"""
    told = {State.COMPLETE: "complete", State.PRUNED: "stopped early", State.FAILED: "failed"}
    parts = [count(sum(summary.trials.values()), "trial")]
    for state, words in told.items():
        if summary.trials.get(state):
            parts.append(f"{summary.trials[state]} {words}")
    return ", ".join(parts)
