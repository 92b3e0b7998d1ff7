"""The sentence that opens a result, for anybody: how good, how much better, from what."""

from __future__ import annotations

from collections.abc import Callable

from hpsearch.domain.lifecycle import State
from hpsearch.ranking.selection import Ranked, standing
from hpsearch.result.study_result import StudyResult
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import StudySummary
from hpsearch.words.numbers import count, duration, number

Name = Callable[[str], str]
TO_THE_END = "to the end"


def opening(result: StudyResult, summary: StudySummary, name: Name = str) -> tuple[str, ...]:
    """The pieces of the sentence: ``accuracy 0.971, 0.03 better than the defaults, from 24 trials
    in 14 s; trained once``. `name` writes the name of a metric."""
    effort = _effort(summary)
    best = result.best
    if best is not None:
        (metric, _), *_ = result.objectives
        over = best.trial.violation
        limits = f", {over:.1%} over the limits, which no trial keeps" if over > 0 else ""
        value, how = _value(best), _not_yet_shown(best)
        value += f" if trained {how}" if how else ""
        trainings = "" if how == TO_THE_END else f"; {_trainings(best)}"
        return (name(metric), f" {value}{limits}{_gain(result)}, {effort}{trainings}")
    if result.ranked:
        pieces = [f"{_trade_offs(len(result.ranked))} between "]
        for place, (metric, _) in enumerate(result.objectives):
            last = place == len(result.objectives) - 1
            pieces += [(" and " if last else ", ") * (place > 0), name(metric)]
        return (*pieces, f", {effort}")
    return (f"no result{'' if summary.state.is_over else ' yet'}: {_why_none(result, summary)}",)


def _value(best: Ranked[TrialRow]) -> str:
    """The outcome of training it again, as the gain counts it."""
    return number(standing(best.trial) if best.again is None else best.again.mean)


def _not_yet_shown(best: Ranked[TrialRow]) -> str | None:
    """The training that would show that value, where the trial itself has shown another one and
    was not repeated; None otherwise."""
    again = best.again
    if again is None or again.runs or number(again.mean) == number(best.value):
        return None
    return "again" if best.trial.state is State.COMPLETE else TO_THE_END


def _gain(result: StudyResult) -> str:
    gained, default, best = result.gain, result.default, result.best
    if gained is None or default is None or best is None:
        return ""
    if best.trial.number == default.number:
        return " with the defaults, which no trial beats"
    if gained <= 0:
        return ", not better than the defaults"
    return f", {number(gained)} better than the defaults"


def _effort(summary: StudySummary) -> str:
    """``from 24 trials in 14 s``, without repeats; ``so far`` while more may come."""
    used = {line.name: line.used for line in summary.budget}
    wall_clock_s = used["wall_clock_seconds"]
    took = f" in {duration(wall_clock_s)}" if wall_clock_s else ""
    so_far = "" if summary.state.is_over else " so far"
    return f"from {count(int(used['trials']), 'trial')}{took}{so_far}"


def _trainings(best: Ranked[TrialRow]) -> str:
    """How often the value was measured."""
    runs = best.again.runs if best.again is not None else 0
    if runs:
        return f"mean of {runs} trainings" if runs > 1 else "trained again once"
    is_complete = best.trial.state is State.COMPLETE
    return "trained once" if is_complete else "not trained to the end"


def _trade_offs(trials: int) -> str:
    return "1 trial is the best trade-off" if trials == 1 else f"the {trials} best trade-offs"


def _why_none(result: StudyResult, summary: StudySummary) -> str:
    trials = sum(summary.trials.values())
    failed = summary.trials.get(State.FAILED, 0)
    if not trials:
        return "no trial has started"
    if failed == trials:
        return "the only trial failed" if trials == 1 else f"all {trials:,} trials failed"
    if len(result.study.directions) < 2 and not result.study.has_best:
        return "the study states no direction"
    return f"none of {trials:,} trials has a value" if trials > 1 else "its trial has no value"
