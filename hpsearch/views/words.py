"""Facts in plain English, the same on a terminal, on pages, for agents and in notices: the value of
a trial; the result of a study, how sure it is and what it cost; its rungs; its requests.

A sentence begins with a small letter and has no full stop, so that it can follow a label.
"""

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hpsearch.domain.facts import NextHour, RequestKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import NOTHING, cell, count, duration, in_unit, moment, number, pairs
from hpsearch.domain.records import Decision, Environment, Request, Version
from hpsearch.search.ranking.again import Again
from hpsearch.search.ranking.repeats import expectation
from hpsearch.search.ranking.selection import Candidate, Ranked, likely_range, standing
from hpsearch.search.ranking.trust import Correlation, RungVerdict
from hpsearch.search.ranking.verdicts.certificate import Claim
from hpsearch.store.reading.attempts import Origins, code_of
from hpsearch.store.reading.best import LastWord
from hpsearch.store.reading.own_ends import OwnEnds
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.status import BudgetLine, StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.study_file.models import StudyBudget, StudySpec
from hpsearch.views.result import StudyResult
from trials.contract import Unit
from trials.descriptions.command import COMMAND
from trials.descriptions.command_line import SEED
from trials.settings import some

BUDGET_WORDS = {
    "trials": "trials",
    "gpu_seconds": "compute time",
    "wall_clock_seconds": "wall clock",
    "cost": "cost",
}
"""The names of the limits of a budget on the screen."""


def expected(trial: Candidate) -> str:
    """The value that is expected of a trial in full, with its 90% interval: ``0.8123 ± 0.004``."""
    value = expectation(trial)
    return NOTHING if value is None else _within(value, *likely_range(trial))


def if_again(again: Again | None) -> str:
    """The outcome of training a trial again, with the 90% interval and the number of its
    repeats: ``0.8123 ± 0.004 (3 runs)``."""
    if again is None:
        return NOTHING
    mean, low, high = again.mean, again.low, again.high
    within = number(mean) if low is None or high is None else _within(mean, low, high)
    return f"{within} ({count(again.runs, 'run')})" if again.runs else within


def _within(value: float, low: float, high: float) -> str:
    """A value with its interval: ``0.8 ± 0.04``; ``0.8 [0.5 to 0.95]`` where its sides differ."""
    if not math.isclose(value - low, high - value, rel_tol=0.1):
        return f"{number(value)} [{number(low)} to {number(high)}]"
    return f"{number(value)} ± {(high - low) / 2:.2g}" if low < high else number(value)


def may_change(trial: Candidate) -> bool:
    """True if something is expected of a trial that it has not shown already."""
    if expectation(trial) is None:
        return False
    low, high = likely_range(trial)
    return trial.state is not State.COMPLETE or low < high


def on_the_way(value: float | None, seen_at: float | None, last: float | None, unit: str) -> str:
    """A value, and where its trial has shown another one since then, at which resource that was and
    the last value: ``0.9 at 2 epochs, last 0.5``."""
    shown, ended = number(value), number(last)
    if seen_at is None or last is None or shown == ended:
        return shown
    return f"{shown} at {in_unit(seen_at, unit)}, last {ended}"


def values(row: TrialRow) -> str:
    return number(row.value) if row.values is None else ", ".join(map(number, row.values))


def score(row: Ranked[TrialRow], *, driven: bool) -> str:
    """The outcome of training a trial again, or else what it has shown, with its state unless it is
    complete. One that runs without a driver is shown as queued."""
    again, shown, state = row.again, _value(row), row.trial.state
    if again is not None and again.is_measured:
        shown = f"{if_again(again)} if trained again"
    if state is State.COMPLETE or row.confirmed is not None:
        return shown
    if state is State.RUNNING and not driven:
        state = State.QUEUED
    return f"{shown} ({state.value})"


def nearest_limit(lines: Sequence[BudgetLine]) -> str:
    """The limit that is nearest: ``12 of 24 trials``, ``1 h of 4 h compute time``."""
    limits = [line for line in lines if line.most]
    if not limits:
        return NOTHING
    nearest = max(limits, key=lambda line: line.used / (line.most or 1.0))
    return f"{of_limit(nearest)} {BUDGET_WORDS[nearest.name]}"


def of_limit(line: BudgetLine) -> str:
    """The used part of a limit: ``12 of 24``, ``1 h of 4 h``; ``1 h`` where nothing limits it."""
    write = duration if line.name.endswith("seconds") else number
    return write(line.used) if line.most is None else f"{write(line.used)} of {write(line.most)}"


def by_device(status: StudyStatus) -> str | None:
    """The compute time and money of each type of device: ``A100 2 h (5), T4 1 h (no price)``; None
    where there is one type, unless it has no price though others do."""
    budget, lines = status.summary.head.budget, status.devices
    has_prices = budget is not None and budget.cost_per_gpu_hour is not None
    if len(lines) < 2 and not (has_prices and any(line.cost is None for line in lines)):
        return None
    parts = []
    for line in lines:
        price = "no price" if line.cost is None else number(line.cost)
        money = f" ({price})" if has_prices else ""
        parts.append(f"{line.device or 'unknown'} {duration(line.gpu_seconds)}{money}")
    return ", ".join(parts)


def sharing(status: StudyStatus) -> str | None:
    """How many trials share a GPU, what they train together, and the price of an hour of one:
    ``4 trials on each H100; 5,000 samples a second together; an hour of a trial costs 0.5 on
    H100``; None where they share none."""
    if not status.sharing:
        return None
    lines = []
    for device, found in status.sharing.items():
        sought = "" if found["is_final"] else " so far"
        lines.append(f"{count(found['trials'], 'trial')} on each {device}{sought}")
    rates = [each.samples for each in status.running if each.samples is not None]
    if rates:
        lines.append(f"{sum(rates):,.0f} samples a second together")
    budget = status.summary.head.budget
    for device, found in status.sharing.items():
        price = None if budget is None else budget.price_of(device)
        if price is not None:
            lines.append(f"an hour of a trial costs {number(price / found['trials'])} on {device}")
    return "; ".join(lines)


def luck(ranked: Ranked[TrialRow]) -> str:
    again = ranked.again
    if again is None or not again.is_measured:
        return "trained once: part of its value may be luck; search.confirm measures that"
    if not again.runs:
        estimated = "how far seeds move it is estimated from the spread of the best trials"
        return f"trained once: {estimated}; search.confirm measures that"
    if again.low is None:
        return "repeated once with another seed: too little to say how far it varies"
    times = "once" if again.runs == 1 else f"{again.runs} times"
    trained = f"trained with other seeds {times} more"
    return f"{trained}, so that the luck of the search is not in this value"


def _luck_in(result: StudyResult, best: Ranked[TrialRow]) -> str:
    if result.over is not None and best.confirmed is None:
        return over_rounds(result.over, result.study.budget)
    no_seed = without_seed(result.study.content.get("task"))
    return luck(best) if no_seed is None else f"{luck(best)}; {no_seed}"


def over_rounds(of: Again, budget: StudyBudget | None) -> str:
    """``0.9 is the mean over 5 folds, on other data like this between 0.87 and 0.93 (90%)``"""
    unit = "folds" if budget is None else budget.per_trial.unit
    others = "on other data like this" if unit == Unit.FOLDS else "over any number of seeds"
    within = f"{others} between {number(of.low)} and {number(of.high)} (90%)"
    return f"{number(of.mean)} is the mean over {of.runs} {unit}, {within}"


def without_seed(task: Any) -> str | None:
    """A remark on the `task` part of a command that is not given the seeds of its trials, so that
    intervals hold nothing of them; None for any other task."""
    if not isinstance(task, dict) or task.get("kind") != COMMAND.kind or f"{{{SEED}}}" in str(task):
        return None
    return (
        f"the command has no {{{SEED}}}, so if it sets a seed of its own, no interval knows others"
    )


def worth(ranked: Ranked[TrialRow]) -> str:
    """The outcome of training a trial again: ``0.97 if trained again, 90% of the time
    between 0.96 and 0.98``; its own value where nothing tells how far trainings vary."""
    again = ranked.again
    if again is None or not again.is_measured:
        return number(standing(ranked.trial))
    if again.low is None:
        return f"{number(again.mean)} when trained again"
    between = f"90% of the time between {number(again.low)} and {number(again.high)}"
    return f"{number(again.mean)} if trained again, {between}"


def gain(result: StudyResult) -> str | None:
    """``0.1 better than the default settings' 0.8 (trial 0)``; None without a comparison."""
    best, default, gained = result.best, result.default, result.gain
    if best is None or default is None or gained is None:
        return None
    settings = f"the default settings' {number(standing(default))} (trial {default.number})"
    if best.trial.number == default.number:
        return f"no trial is better than {settings}"
    return f"{number(gained) if gained > 0 else 'not'} better than {settings}"


def last_word(result: StudyResult) -> str | None:
    """``better than the defaults by 0.021 (at least 0.008 with 95%)``, or ``not shown to be better:
    use the defaults``, with what it counts, or what more would decide it and at what cost; None
    without `search.certify`."""
    word = result.last_word
    if word is None:
        return None
    found = word.found
    is_shown = found is not None and found.is_shown
    why = _counted(found) if found is not None and is_shown else _undecided(word)
    return f"{_verdict(result, word)}; {why}"


def _verdict(result: StudyResult, word: LastWord) -> str:
    found, best = word.found, result.best
    if found is None or not found.is_shown:
        return "not shown to be better: use the defaults"
    is_best = best is not None and best.trial.number == found.candidate
    which = "" if is_best else f"trial {found.candidate} is "
    least = f"at least {number(found.least)} with {number(100 * word.level)}%"
    return f"{which}better than the defaults by {number(found.gain)} ({least})"


def _counted(found: Claim) -> str:
    luck = "that of the validation samples is not known"
    if found.samples:
        luck = f"and of {found.samples:,} validation samples"
    return f"the luck of {count(len(found.differences), 'pair')} of trainings counts, {luck}"


def _undecided(word: LastWord) -> str:
    found = word.found
    if found is None:
        return "no trial that leads them has been compared with them"
    trial = f"trial {found.candidate}"
    if found.failed:
        return f"{count(found.failed, 'repeat')} of {trial} or of them failed"
    if not found.differences:
        return f"{trial} is being compared with them"
    gained = f"{number(found.gain)} better" if found.gain > 0 else "not better"
    seen = f"{trial} is {gained}, where {_counted(found)}"
    if found.samples_needed is not None:
        return f"{seen}: about {found.samples_needed:,} samples may decide it"
    if not found.more:
        return f"{seen}: no more pairs are expected to decide it"
    cost = duration(2 * found.more * (word.repeat_s or 0.0))
    return f"{seen}: {count(found.more, 'more pair')}, {cost} of compute time, may decide it"


def rivals(result: StudyResult) -> str | None:
    """The trials too close to the best one to call, or trained too little to tell, if any."""
    kinds = {"too close to call": result.tied, "trained too little to tell": result.unknown}
    parts = [f"{why}: {_trials(numbers)}" for why, numbers in kinds.items() if numbers]
    return "; ".join(parts) or None


MOST_NAMED = 5  # trials that are named of those that are too close to the best to call


def _trials(numbers: Sequence[int]) -> str:
    """``trial 3``, ``trials 3, 8``, ``trials 3, 8 and 4 more``"""
    return f"trial{'' if len(numbers) == 1 else 's'} {some(numbers, MOST_NAMED)}"


def how_sure(result: StudyResult) -> list[str]:
    """All that is known of how sure a result is, a sentence each."""
    sentences = [None if result.no_effect is None else result.no_effect.warning]
    if result.best is not None:
        sentences += [
            _luck_in(result, result.best),
            rivals(result),
            last_word(result) or gain(result),
            caveat(result.trust),
        ]
    sentences += [own_ends(result.ends), code(result)]
    return [sentence for sentence in sentences if sentence is not None]


def in_detail(result: StudyResult, status: StudyStatus) -> dict[str, str]:
    best, facts = result.best, dict[str, str | None]()
    if best is not None:
        facts |= {"value": _shown(result, best), "luck": _luck_in(result, best)}
        facts |= {"others": rivals(result), "gain": last_word(result) or gain(result)}
        if best.trial.violation > 0:
            facts["limits"] = f"exceeded by {best.trial.violation:.1%}; no trial keeps them all"
    facts |= {"cost": _cost(status), "by device": by_device(status), "GPUs": sharing(status)}
    facts |= {"more": next_hour(status.next_hour), "own ends": own_ends(result.ends)}
    facts |= {"rungs": caveat(result.trust, unknown=False), "code": code(result)}
    return {name: text for name, text in facts.items() if text is not None}


def own_ends(of: OwnEnds | None) -> str | None:
    """``6 of 8 complete trials ended before the budget, at 90 to 95 of 100 steps``;
    also how many went on beyond it. None if all ended at it."""
    if of is None:
        return None
    parts, total = [], in_unit(of.total, of.unit)
    if of.early:
        at = dict.fromkeys(map(number, (of.early[0], of.early[-1])))
        who = f"{len(of.early)} of {count(of.complete, 'complete trial')}"
        parts.append(f"{who} ended before the budget, at {' to '.join(at)} of {total}")
    if of.beyond:
        hint = "in a new study, raise per_trial to the most that a trial reports"
        parts.append(f"{count(of.beyond, 'trial')} went on beyond the budget of {total}: {hint}")
    return "; ".join(parts)


def code(result: StudyResult) -> str | None:
    """A warning that trials ran different code or data, with that of the best one, if they did."""
    sessions, own = result.origins.sessions, result.origins.best
    if result.origins.versions and result.ranked:
        return _of_versions(result.origins, result.ranked[0].trial)
    if len(sessions) < 2 or own is None or not result.ranked:
        return None
    which = f"trial {result.ranked[0].trial.number} ran on {_version(own)}"
    others = [_version(each) for each in sessions if code_of(each) != code_of(own)]
    rest = ", ".join(dict.fromkeys(others))
    what = "code or data changed while the study went on, so its values may not compare"
    return f"{what}: {which}, others on {rest}"


def _of_versions(origins: Origins, best: TrialRow) -> str | None:
    breaks = [each.number for each in origins.versions if each.new_code]
    code_of_best = bisect(breaks, best.version)
    others = {
        number: trials
        for number, trials in origins.ran.items()
        if bisect(breaks, number) != code_of_best
    }
    if not others and bisect(breaks, origins.begun) == code_of_best:
        return None
    begun = "" if origins.begun == best.version else f", and was begun in version {origins.begun}"
    of = [f"{count(trials, 'other')} of version {number}" for number, trials in others.items()]
    what = "versions of the study ran other code or data, so its values may not compare"
    which = f"trial {best.number} is of {version(origins.versions[best.version - 1])}{begun}"
    return "; ".join([f"{what}: {which}", *of])


def version(of: Version) -> str:
    """``version 2 (git revision 1a2b, since 2026-03-01 12:00 by ada@lab: train.py has changed)``"""
    revision = "" if of.revision is None else f"git revision {of.revision}, "
    changes = f": {'; '.join(of.changes)}" if of.changes else ""
    return f"version {of.number} ({revision}since {moment(of.created)} by {of.origin}{changes})"


def _version(session: Environment) -> str:
    revision = "" if session.revision is None else f"git revision {session.revision}, "
    return f"{revision}{moment(session.created)}"


def next_hour(of: NextHour | None) -> str | None:
    """``another GPU hour: +0.001 expected, 6% chance of more than +0.005``"""
    if of is None:
        return None
    chance = f"{of.chance:.0%} chance of more than +{number(of.than)}"
    return f"{of.what}: +{of.gain:.2g} expected, {chance}"


def _shown(result: StudyResult, best: Ranked[TrialRow]) -> str:
    """The outcome of training a trial again, and the best value that it has shown."""
    text, spec, state = worth(best), result.trust.spec, best.trial.state
    seen_at, at = result.seen_at.get(best.trial.number), ""
    if seen_at is not None:
        unit = "" if spec is None else spec.budget.per_trial.unit.value
        at = f", at {in_unit(seen_at, unit)}".rstrip()
    if state is not State.COMPLETE:
        return f"{text}; {number(best.value)} so far{at}: it is {state.value}"
    return text if text == number(best.value) else f"{text}; {number(best.value)} at best{at}"


def _cost(status: StudyStatus) -> str:
    """Compute time, money, wall clock, and the number of trials; ``so far`` while more may come."""
    counts, used = status.summary.trials, {line.name: line.used for line in status.summary.budget}
    by_state = counted(counts, status.summary.revision_runs).replace("pruned", "stopped early")
    so_far = "" if status.summary.state.is_over else " so far"
    trials = ", ".join(filter(None, [count(sum(counts.values()), "trial"), by_state])) + so_far
    if not used["gpu_seconds"]:
        return f"not recorded: {trials}"
    money = f" (cost {number(used['cost'])})" if "cost" in used else ""
    compute = f"{duration(used['gpu_seconds'])} of compute time{money}"
    return f"{compute}, {duration(used['wall_clock_seconds'])} of wall clock: {trials}"


def counted(counts: Mapping[State, int], of_code: int = 0) -> str:
    """``2 running, 5 paused``, with as many runs of changed code; empty where there is none."""
    parts = [f"{counts[state]} {state.value}" for state in State if counts.get(state)]
    return ", ".join(parts + [f"{count(of_code, 'run')} of changed code"] * bool(of_code))


def _of_total(resource: float, spec: StudySpec) -> str:
    """``3 of 9 epochs``"""
    per_trial = spec.budget.per_trial
    return f"{number(resource)} of {in_unit(per_trial.total, per_trial.unit.value)}"


_MEANING = {
    RungVerdict.TELLS: "the standing predicts the end",
    RungVerdict.UNCLEAR: "unclear how well the standing predicts the end",
    RungVerdict.LITTLE: "the standing says little about the end",
}
_CAVEATS = {
    RungVerdict.UNCLEAR: "it is not clear how well the rungs predicted the end",
    RungVerdict.LITTLE: "the rungs of this study told little about the end",
}


def weakest_rung(trust: StudyTrust) -> str | None:
    """The trust in the weakest rung; None if no trial has paused at any."""
    rung, spec = trust.weakest, trust.spec
    if rung is None or spec is None:
        return None
    if rung.correlation is None:
        few = "too few trials" if rung.finished else "no trial"
        found = f"{few} trained to the end"
    else:
        found = f"{_MEANING[rung.verdict]}, rank correlation {_correlation(rung.correlation)}"
    return f"weakest at {_of_total(rung.level, spec)}: {found}"


def _correlation(of: Correlation) -> str:
    """``0.62 (0.1 to 0.88; 9 trials)``"""
    return f"{of.value:.2f} ({of.low:.2f} to {of.high:.2f}; {count(of.trials, 'trial')})"


def caveat(trust: StudyTrust, *, unknown: bool = True) -> str | None:
    """The reason why rungs may not be trusted, or with `unknown` also that too few trials were
    trained in full to tell; None if they can be trusted, or paused no trial."""
    rung, spec = trust.weakest, trust.spec
    if rung is None or spec is None or rung.verdict is RungVerdict.TELLS:
        return None
    if rung.correlation is None:
        few = f"only {count(rung.finished, 'trial')}" if rung.finished else "no trial"
        sentence = f"it is not known whether the rungs can be trusted: {few} trained to the end"
        return sentence if unknown else None
    found = f"rank correlation {_correlation(rung.correlation)} at {_of_total(rung.level, spec)}"
    longer = "a higher first_rung, or pruner: none, trains trials further before they pause"
    return f"{_CAVEATS[rung.verdict]}: {found}; {longer}"


def opening(
    result: StudyResult, summary: StudySummary, name: Callable[[str], str] = str
) -> tuple[str, ...]:
    """The pieces of the first sentence: ``accuracy 0.971, 0.03 better than the defaults, from 24
    trials in 14 s; trained once``. `name` writes the name of a metric."""
    metrics = list(map(name, result.metrics))
    effort, best = _effort(summary), result.best
    if best is not None:
        over = best.trial.violation
        limits = f", {over:.1%} over the limits, which no trial keeps" if over > 0 else ""
        often = _trainings(best) if result.over is None else f"; trained {result.over.runs} times"
        return (metrics[0], f" {_value(best)}{limits}{_gain(result)}, {effort}{often}")
    if result.ranked:
        front = len(result.ranked)
        pieces = [f"the {front} best trade-offs" if front > 1 else "1 trial is the best trade-off"]
        separators = [" between ", *[", "] * len(metrics[2:]), " and "]
        for separator, metric in zip(separators, metrics, strict=False):
            pieces += [separator, metric]
        return (*pieces, f", {effort}")
    return (f"no result{'' if summary.state.is_over else ' yet'}: {_why_none(result, summary)}",)


def _value(best: Ranked[TrialRow]) -> str:
    """The outcome of training it again, as the gain counts it; with the training that would show
    that value where the trial itself has shown another one."""
    if best.again is None:
        value = number(standing(best.trial))
        is_end = best.trial.state is State.COMPLETE and value != number(best.value)
        return f"{value} at the end" if is_end else value
    value = number(best.again.mean)
    if best.again.runs or value == number(best.value):
        return value
    return f"{value} if trained {'again' if best.trial.state is State.COMPLETE else 'to the end'}"


def _gain(result: StudyResult) -> str:
    if result.last_word is not None:
        return f", {_verdict(result, result.last_word)}"
    gained, default, best = result.gain, result.default, result.best
    if gained is None or default is None or best is None:
        return ""
    if best.trial.number == default.number:
        return " with the defaults, which no trial beats"
    return f", {number(gained) if gained > 0 else 'not'} better than the defaults"


def _effort(summary: StudySummary) -> str:
    """``from 24 trials in 14 s``, without repeats; ``so far`` while more may come."""
    used = {line.name: line.used for line in summary.budget}
    wall_clock_s = used["wall_clock_seconds"]
    took = f" in {duration(wall_clock_s)}" if wall_clock_s else ""
    so_far = "" if summary.state.is_over else " so far"
    return f"from {count(int(used['trials']), 'trial')}{took}{so_far}"


def _trainings(best: Ranked[TrialRow]) -> str:
    """How often the value was measured; empty where the value says so itself."""
    runs = best.again.runs if best.again is not None else 0
    if runs:
        return f"; mean of {runs} trainings" if runs > 1 else "; trained again once"
    if best.trial.state is State.COMPLETE:
        return "; trained once"
    return "" if _value(best).endswith("to the end") else "; not trained to the end"


def _why_none(result: StudyResult, summary: StudySummary) -> str:
    trials = sum(summary.trials.values())
    if not trials:
        return "no trial has started"
    if summary.trials.get(State.FAILED, 0) == trials:
        return "the only trial failed" if trials == 1 else f"all {trials:,} trials failed"
    if len(result.study.directions) < 2 and not result.study.has_best:
        return "the study states no direction"
    return f"none of {trials:,} trials has a value" if trials > 1 else "its trial has no value"


def request_in_words(request: Request) -> str:
    """``raise trials to 80``, ``try dropout=0.2``, ``stop trial 3``."""
    content = request.content
    match request.kind:
        case RequestKind.INTERRUPT:
            return "stop the study"
        case RequestKind.STOP:
            return f"stop trial {content.get('trial')}"
        case RequestKind.BUDGET:
            limits = [f"{name} to {cell(value)}" for name, value in content.items()]
            return f"raise {', '.join(limits)}"
        case RequestKind.REVISE:
            return f"test a change of code ({content.get('why') or 'no reason given'})"
    params = content.get("params")
    tried = pairs(params) if isinstance(params, dict) and params else "a configuration"
    why = f" ({content['why']})" if content.get("why") else ""
    return f"try {tried}{why}"


def answer_in_words(request: Request) -> str:
    """The outcome of a request: ``done``, ``trial 9``, ``refused: too low``."""
    if request.refused is not None:
        return f"refused: {request.refused}"
    if request.handled is None:
        return "waits for the driver"
    return f"trial {request.trial}" if request.kind is RequestKind.PROPOSE else "done"


def latest(decisions: Iterable[Decision], requests: Iterable[Request]) -> list[str]:
    """Decisions about trials, ``trial 3 pause: 2 of 7 go on from 3``, and answers to requests that
    no decision tells, the newest last."""
    lines = []
    for decision in decisions:
        text = f"trial {decision.trial} {decision.kind.value}: {decision.why}"
        lines.append((decision.created, text))
    for request in requests:
        is_of_study = request.kind in (RequestKind.BUDGET, RequestKind.INTERRUPT)
        if request.handled is not None and (is_of_study or request.refused is not None):
            asked = f"{request.origin} asked to {request_in_words(request)}"
            lines.append((request.handled, f"{asked}: {answer_in_words(request)}"))
    return [line for _, line in sorted(lines, key=lambda line: line[0])]
