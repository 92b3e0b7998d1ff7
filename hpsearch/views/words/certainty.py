"""The result of a study in sentences: the first one for anybody; then luck, gain, ties, and how far
rungs can be trusted.

A sentence begins with a small letter and has no full stop, so that it can follow a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import count, duration, number
from hpsearch.search.ranking.selection import Ranked, standing
from hpsearch.search.ranking.trust import Correlation, RungTrust, RungVerdict
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.study_file.models import StudySpec
from hpsearch.views.result.study_result import StudyResult
from hpsearch.views.result.unfinished import Unfinished
from hpsearch.views.words.estimates import by_device, expected

MOST_NAMED = 5
"""Trials that are named of those that are too close to the best to call."""


def luck(place: Ranked[TrialRow]) -> str:
    """The part that luck may have in the value that a trial is ranked by."""
    again = place.again
    if again is None or not again.runs:
        if again is None or again.low is None:
            return "trained once: part of its value may be luck; search.confirm measures that"
        return (
            "trained once: how far seeds move it is estimated from the spread of the best trials; "
            "search.confirm measures that"
        )
    if again.low is None:
        return "repeated once with another seed: too little to say how far it varies"
    times = "once" if again.runs == 1 else f"{again.runs} times"
    told = f"trained with other seeds {times} more"
    return f"{told}, so that the luck of the search is not in this value"


def worth(place: Ranked[TrialRow]) -> str:
    """The outcome of training a trial again: ``0.97 if trained again, 90% of the time
    between 0.96 and 0.98``; its own value where nothing tells how far trainings vary."""
    again = place.again
    if again is None or (again.low is None and not again.runs):
        return number(standing(place.trial))
    if again.low is None:
        return f"{number(again.mean)} when trained again"
    between = f"90% of the time between {number(again.low)} and {number(again.high)}"
    return f"{number(again.mean)} if trained again, {between}"


def gain(result: StudyResult) -> str | None:
    """``0.1 better than the default settings' 0.8 (trial 0)``; None if there is nothing to compare
    with."""
    best, default, gained = result.best, result.default, result.gain
    if best is None or default is None or gained is None:
        return None
    settings = f"the default settings' {number(standing(default))} (trial {default.number})"
    if best.trial.number == default.number:
        return f"no trial is better than {settings}"
    if gained <= 0:
        return f"not better than {settings}"
    return f"{number(gained)} better than {settings}"


def rivals(result: StudyResult) -> str | None:
    """The trials that are too close to the best one to call, and those trained too little to tell;
    None where there are none."""
    tied, unknown = result.tied, result.unknown
    parts = [f"too close to call: {_trials(tied)}"] if tied else []
    if unknown:
        parts.append(f"trained too little to tell: {_trials(unknown)}")
    return "; ".join(parts) or None


def how_sure(result: StudyResult) -> list[str]:
    """All that is known of how sure a result is, a sentence each."""
    warning = None if result.no_effect is None else result.no_effect.warning
    if result.best is None:
        return [] if warning is None else [warning]
    sentences = [warning, luck(result.best), rivals(result), gain(result), caveat(result.trust)]
    return [sentence for sentence in sentences if sentence is not None]


def in_detail(result: StudyResult, status: StudyStatus) -> dict[str, str]:
    """How sure a result is and what it cost, as facts by their names."""
    best, facts = result.best, dict[str, str | None]()
    if best is not None:
        facts |= {"value": _shown(result, best), "luck": luck(best)}
        facts |= {"others": rivals(result), "gain": gain(result)}
        if best.trial.violation > 0:
            facts["limits"] = f"exceeded by {best.trial.violation:.1%}; no trial keeps them all"
    facts |= {"cost": _cost(status), "by device": by_device(status)}
    facts["rungs"] = caveat(result.trust, unknown=False)
    return {name: text for name, text in facts.items() if text is not None}


def _shown(result: StudyResult, best: Ranked[TrialRow]) -> str:
    """The outcome of training a trial again, and the best value that it has shown."""
    text, spec, state = worth(best), result.trust.spec, best.trial.state
    seen_at = result.seen_at.get(best.trial.number)
    unit = "" if spec is None else f" {spec.budget.per_trial.unit.value}"
    at = "" if seen_at is None else f", at {number(seen_at)}{unit}"
    if state is not State.COMPLETE:
        return f"{text}; {number(best.value)} so far{at}: it is {state.value}"
    return text if text == number(best.value) else f"{text}; {number(best.value)} at best{at}"


def _cost(status: StudyStatus) -> str:
    """Compute time, money, wall clock, and the number of trials; ``so far`` while more may come."""
    counts, used = status.summary.trials, {line.name: line.used for line in status.budget}
    parts = [count(sum(counts.values()), "trial")]
    words = {State.PRUNED: "stopped early"}
    for state in State:
        if counts.get(state):
            parts.append(f"{counts[state]} {words.get(state, state.value)}")
    so_far = "" if status.summary.state.is_over else " so far"
    trials = ", ".join(parts) + so_far
    if not used["gpu_seconds"]:
        return f"not recorded: {trials}"
    money = f" (cost {number(used['cost'])})" if "cost" in used else ""
    compute = f"{duration(used['gpu_seconds'])} of compute time{money}"
    return f"{compute}, {duration(used['wall_clock_seconds'])} of wall clock: {trials}"


def may_still_win(found: Unfinished, command: str) -> str:
    """The trial that was not trained to the end and might still win, and the command for it."""
    row, per_trial = found.trial, found.spec.budget.per_trial
    at = f"{number(row.resource)} of {number(per_trial.total)} {per_trial.unit.value}"
    best = found.best
    if best is None:
        against = "no trial is complete"
    else:
        value = best.value if best.again is None else best.again.mean
        against = f"the best complete trial, {best.trial.number}, has {number(value)}"
    others = f", as may {count(found.others, 'other')}" if found.others else ""
    return (
        f"trial {row.number}, which stopped at {at}, may still win{others}: "
        f"{expected(row)} if trained to the end, and {against}; train it to the end with: {command}"
    )


def _trials(numbers: Sequence[int]) -> str:
    """``trial 3``, ``trials 3, 8``, ``trials 3, 8 and 4 more``"""
    named = ", ".join(str(number) for number in numbers[:MOST_NAMED])
    more = len(numbers) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"trial{'' if len(numbers) == 1 else 's'} {named}{rest}"


# --------------------------------------------------------------------------------------- rungs

_MEANING = {
    RungVerdict.TELLS: "the standing predicts the end",
    RungVerdict.UNCLEAR: "unclear how well the standing predicts the end",
    RungVerdict.LITTLE: "the standing says little about the end",
}


def weakest_rung(trust: StudyTrust) -> str | None:
    """The trust in the weakest rung; None if no trial has paused at any."""
    rung, spec = trust.weakest, trust.spec
    if rung is None or spec is None:
        return None
    where = f"weakest at {_place(rung, spec)}"
    if rung.correlation is None:
        too_few = "too few trials" if rung.finished else "no trial"
        return f"{where}: {too_few} trained to the end"
    return f"{where}: {_MEANING[rung.verdict]}, rank correlation {_correlation(rung.correlation)}"


def caveat(trust: StudyTrust, *, unknown: bool = True) -> str | None:
    """The reason why rungs may not be trusted, or with `unknown` also that too few trials were
    trained in full to tell; None if they can be trusted, or paused no trial."""
    rung, spec = trust.weakest, trust.spec
    if rung is None or spec is None or rung.verdict is RungVerdict.TELLS:
        return None
    correlation = rung.correlation
    if correlation is None:
        few = f"only {count(rung.finished, 'trial')}" if rung.finished else "no trial"
        sentence = f"it is not known whether the rungs can be trusted: {few} trained to the end"
        return sentence if unknown else None
    found = f"rank correlation {_correlation(correlation)} at {_place(rung, spec)}"
    longer = "a higher first_rung, or pruner: none, trains trials further before they pause"
    if rung.verdict is RungVerdict.UNCLEAR:
        return f"it is not clear how well the rungs predicted the end: {found}; {longer}"
    return f"the rungs of this study told little about the end: {found}; {longer}"


def _place(rung: RungTrust, spec: StudySpec) -> str:
    per_trial = spec.budget.per_trial
    return f"{number(rung.level)} of {number(per_trial.total)} {per_trial.unit.value}"


def _correlation(of: Correlation) -> str:
    """``0.62 (0.1 to 0.88; 9 trials)``"""
    return f"{of.value:.2f} ({of.low:.2f} to {of.high:.2f}; {count(of.trials, 'trial')})"


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
