"""The answer of a study: which configuration is best, how sure that is, and what it cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.ranking.selection import Ranked
from hpsearch.report.frames.clocks import wall_clock
from hpsearch.report.story import StudyStory
from hpsearch.report.wording import PageAnswer, PageTable, Pieces, foreign, foreign_name
from hpsearch.store.reading.queries import TrialRow
from hpsearch.terminal.answer import others
from hpsearch.words import trust
from hpsearch.words.answer import LUCK
from hpsearch.words.estimates import continued, expected, interval, may_change
from hpsearch.words.numbers import NOTHING, cell, duration, number
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND

MOST_PARAMETERS = 8
"""A table of several configurations has columns for so many parameters."""
LONG_CONFIGURATION = 12
"""Of a configuration of more than twice as many parameters, the answer has so many."""


def answer(story: StudyStory, parameters: Sequence[str]) -> PageAnswer:
    """The answer as texts and tables.

    Args:
        story: The study's.
        parameters: Its parameters, the most important first.
    """
    if len(story.study.directions) > 1:
        return _several(story, parameters)
    winner = story.winner
    if winner is None:
        return PageAnswer((_nothing(story),), _costs(story), False, "", (), ())
    lines = [*_certainty(story, winner), *_rivals(story)]
    if story.gained is not None:
        lines.append((f"Gain: {story.gained.removesuffix(LUCK)}.",))
    caution = trust.caveat(story.trust)
    if caution is not None:
        lines.append(_sentence(caution))
    lines += _costs(story)
    tables = [_configuration(winner.trial, parameters)]
    if len(story.ranked) > 1:
        marks = {"= cannot be told from the first": winner.tied}
        marks["? trained too little to tell"] = any(each.unknown for each in story.ranked)
        meaning = "; ".join(mark for mark, is_there in marks.items() if is_there)
        meaning = f" ({meaning})" if meaning else ""
        tables.append(_listed(story, parameters, f"The best trials{meaning}"))
    goal = story.goal
    headline = (f"Trial {winner.trial.number}: ", foreign_name(goal.metric), f" {_value(winner)}")
    is_sure = winner.confirmed is not None and winner.confirmed.low is not None
    commands = _commands(story, winner.trial)
    return PageAnswer(headline, lines, is_sure, "To train it:", commands, tables)


def _sentence(text: str) -> Pieces:
    return (f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}",)


def _value(ranked: Ranked[TrialRow]) -> str:
    """The value that a trial is ranked by."""
    if ranked.confirmed is not None:
        return interval(ranked.confirmed)
    if may_change(ranked.trial):
        return f"{expected(ranked.trial)} expected in full"
    return number(ranked.value)


def _nothing(story: StudyStory) -> str:
    """Why there is no best configuration."""
    counts = story.status.summary.trials
    total = sum(counts.values())
    if not total:
        return "No trial has started yet"
    failed = counts.get(State.FAILED, 0)
    if failed == total:
        which = "The only trial" if total == 1 else f"All {total:,} trials"
        return f"{which} failed, so there is no best configuration"
    if not story.study.has_best:
        return "The study states no direction, so there is no best configuration"
    return "No trial has a value yet"


def _certainty(story: StudyStory, winner: Ranked[TrialRow]) -> list[Pieces]:
    """What is known of the value of the best trial."""
    lines: list[Pieces] = []
    trial, confirmed = winner.trial, winner.confirmed
    if trial.violation > 0:
        over = f"{trial.violation:.1%}"
        lines.append((f"No trial keeps the limits; this one exceeds them by {over}.",))
    if confirmed is not None and confirmed.low is not None and confirmed.high is not None:
        span = f"{number(confirmed.low)} to {number(confirmed.high)}"
        runs = f"{confirmed.runs} trainings with fresh seeds"
        lines.append((f"Confirmed by {runs}: mean {number(confirmed.mean)}, 90% interval {span}.",))
    elif confirmed is not None:
        lines.append(("Repeated once with a fresh seed, which gives no interval.",))
    elif trial.continues is not None:
        told = f"It {continued(trial)} under other parameters: both trainings gave its value. "
        lines.append((told, "Such a trial is not repeated with fresh seeds."))
    else:
        among = _searched(story)
        lines.append((_luck(among),))
    at = story.seen_at.get(trial.number)
    shown = f"The best value that it showed in the search is {number(winner.value)}"
    if at is not None:
        shown += f", at {number(at)} "
        lines.append((shown, foreign(story.unit), "."))
    else:
        lines.append((f"{shown}.",))
    if trial.state is not State.COMPLETE:
        lines.append((f"It has not been trained in full: it is {trial.state.value}.",))
    return lines


def _luck(among: int) -> str:
    if among <= 1:
        return "Not confirmed, and the only trial with a value: nothing compares it with another."
    return (
        f"Not confirmed: it is the best of {among:,} trials, and part of its lead may be luck. "
        "Repeats with fresh seeds (search.confirm in the study file) would tell."
    )


def _searched(story: StudyStory) -> int:
    """How many trials have a value that counts."""
    trials = story.course.trials
    counts = trials[story.goal.column].notna() & (trials["role"] != "confirm")
    return int((counts & (trials["state"] != State.FAILED)).sum())


def _rivals(story: StudyStory) -> list[Pieces]:
    """The trials that cannot be told from the best one, and those of which it is not known."""
    told = others(story.ranked)
    return [_sentence(told)] if told else []


def _costs(story: StudyStory) -> list[Pieces]:
    """What the study cost, and whether it is over."""
    counts = story.status.summary.trials
    total = sum(counts.values())
    states = ", ".join(f"{counts[state]:,} {state.value}" for state in State if counts.get(state))
    charged = story.attempts["gpu_seconds"].sum()
    seconds = max(float(charged), story.status.summary.gpu_seconds)
    driven = float(wall_clock([story.until], story.spans)[0]) if story.spans else 0.0
    active = max(driven, story.study.active_seconds)
    cost = next((line.used for line in story.status.budget if line.name == "cost"), None)
    money = "" if cost is None else f", a cost of {number(cost)}"
    trials = f"{total:,} {'trial' if total == 1 else 'trials'} ({states})"
    if not total:
        return []
    so_far = " so far" if story.is_going_on else ""
    if story.attempts.empty and seconds == 0:
        return [(f"Tried{so_far}: {trials}. What they cost is not recorded.",)]
    took = f"{duration(seconds)} of compute time{money}, {duration(active)} of wall clock"
    return [(f"Cost{so_far}: {took}, {trials}.",)]


def _commands(story: StudyStory, trial: TrialRow) -> list[str]:
    """What trains a trial's configuration; empty for a study without a study file, and where a
    trial continues another one."""
    kind = story.task_kind
    if kind is None or trial.continues is not None:
        return []
    name = shlex.quote(story.study.name)
    words = f"-- {name}" if name.startswith("-") else name
    if kind in BUILT_IN and kind != COMMAND.kind:
        options = f"--trial {trial.number}"
        return [f"hpsearch train {options} {words}"]
    only = f'--where "number = {trial.number}" --format yaml'
    return [
        f"hpsearch best {only} {words} > best.yaml",
        "python -m trials best.yaml --out model",
    ]


def _configuration(trial: TrialRow, parameters: Sequence[str]) -> PageTable:
    """A configuration; of a long one, what mattered most."""
    if not is_long(trial):
        return whole_configuration(trial)
    most_important = [name for name in parameters if name in trial.params][:LONG_CONFIGURATION]
    chosen = {name: trial.params[name] for name in most_important}
    caption = f"Trial {trial.number}: the {len(chosen)} most important of "
    return parameter_table(f"{caption}{len(trial.params)} parameters", chosen)


def is_long(trial: TrialRow) -> bool:
    """Whether a configuration is too long for the answer."""
    return len(trial.params) > 2 * LONG_CONFIGURATION


def whole_configuration(trial: TrialRow) -> PageTable:
    """All parameters of a trial."""
    return parameter_table(f"Trial {trial.number}", trial.params)


def parameter_table(caption: str, params: Mapping[str, Any]) -> PageTable:
    """Parameters by name, with their values."""
    rows = [(foreign(name), foreign(cell(value))) for name, value in params.items()]
    return PageTable(caption, ("parameter", "value"), rows, frozenset({1}))


def _listed(story: StudyStory, parameters: Sequence[str], caption: str) -> PageTable:
    """The trials of the ranking with what is known of them."""
    ranked = story.ranked[:50]
    named = parameters[:MOST_PARAMETERS]
    left_out = len(parameters) - len(named)
    more = f", with the {len(named)} most important of {len(parameters)} parameters"
    heads, cells = _columns(story, ranked)
    heads += [foreign_name(name) for name in named]
    rows = []
    for each, own in zip(ranked, cells, strict=True):
        rows.append([*own, *(_parameter(each.trial.params, name) for name in named)])
    numeric = frozenset({0, *range(2, len(heads))})
    return PageTable(caption + (more if left_out else ""), heads, rows, numeric)


def _parameter(params: Any, name: str) -> str:
    return foreign_name(cell(params[name])) if name in params else NOTHING


def _columns(
    story: StudyStory, ranked: Sequence[Ranked[TrialRow]]
) -> tuple[list[str], list[list[str]]]:
    """The heads and cells of the ranking's own columns."""
    goals = story.course.goals
    is_expected = any(may_change(each.trial) for each in ranked)
    is_confirmed = any(each.confirmed is not None for each in ranked)
    heads: list[str] = ["trial", "state", *(foreign_name(goal.metric) for goal in goals)]
    heads += ["expected in full (90%)"] * is_expected
    heads += ["confirmed (90%)"] * is_confirmed
    heads += ["compute time"]
    cells = []
    for each in ranked:
        trial = each.trial
        mark = " =" if each.tied and len(goals) == 1 else " ?" * each.unknown
        if trial.continues is not None:
            mark += f" ({continued(trial)})"
        of_goals = [each.value] if trial.values is None else trial.values
        own = [f"{trial.number}{mark}", trial.state.value, *map(number, of_goals)]
        if is_expected:
            own.append(expected(trial))
        if is_confirmed:
            own.append(interval(each.confirmed) or NOTHING)
        own.append(duration(trial.gpu_seconds))
        cells.append(own)
    return heads, cells


def _several(story: StudyStory, parameters: Sequence[str]) -> PageAnswer:
    """The answer of a study of several objectives: its front."""
    ranked = story.ranked
    if not ranked:
        return PageAnswer((_nothing(story),), _costs(story), False, "", (), ())
    goals = ", ".join(goal.metric for goal in story.course.goals)
    beaten = "trial that no other trial beats" if len(ranked) == 1 else "trials that none beats"
    headline = (f"{len(ranked)} {beaten} in all of: ", foreign(goals))
    lines: list[Pieces] = [
        (
            "With several objectives there is no single best configuration: each trial of the "
            "front is better than every other one in some objective.",
        )
    ]
    if ranked[0].trial.violation > 0:
        lines.append(("No trial keeps the limits.",))
    lines += _costs(story)
    caption = "The front" if len(ranked) <= 50 else f"50 of the {len(ranked)} trials of the front"
    commands = _commands(story, ranked[0].trial)
    title = f"To train trial {ranked[0].trial.number}, for example:"
    tables = [_listed(story, parameters, caption)]
    return PageAnswer(headline, lines, False, title, commands, tables)
