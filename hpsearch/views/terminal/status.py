"""The status of a study, the panel of a running one, and its result, for a terminal.

The panel has budgets and running trials as bars, and the latest decisions. The driver's own view
and `hpsearch status --watch` draw the same.
"""

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hpsearch.domain import numbers
from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.numbers import NOTHING, cell, count, duration, first_line, moment, number
from hpsearch.domain.records import Request
from hpsearch.store.reading.status import BudgetLine, DrivenState, StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.views import words
from hpsearch.views.result import StudyResult
from hpsearch.views.terminal.escapes import plain
from hpsearch.views.terminal.tables import NUMERIC, Width, best, best_value, fact_table, table

LABELS = words.BUDGET_WORDS | {"trials": "budget"}
"""The limits of a budget, where `trials` are those by state."""
MOST_REQUESTS = 5  # the number of latest requests that a terminal shows

_RUNNING = (
    *(("trial", NUMERIC), "worker", "node", ("resource", NUMERIC)),
    *(("value", NUMERIC), ("time", NUMERIC)),
)
_FAILURES = ("failed", ("trials", NUMERIC), "example")


def status(
    of: StudyStatus,
    now: float,
    width: Width,
    disk: int | None = None,
    trust: StudyTrust | None = None,
    suggested: Callable[[str], str] = str,
) -> list[RenderableType]:
    """Facts of a study, its running attempts and its failures, with the bytes of its checkpoints on
    the disk and the trust in its rungs, if known. `suggested` completes commands."""
    facts = study_facts(of, now)
    facts["state"] = suggested(facts["state"])
    weakest = None if trust is None else words.weakest_rung(trust)
    if weakest is not None:
        facts["rungs"] = weakest
    if disk is not None:
        limit = of.summary.head.checkpoint_limit_bytes
        most = "" if limit is None else f" of {numbers.size(round(limit))}"
        facts["checkpoints"] = f"{numbers.size(disk)}{most} in {of.summary.head.checkpoints}"
    parts: list[RenderableType] = [fact_table(facts, width)]
    if of.running:
        gone = "process" if of.summary.head.is_asked else "driver"
        title = "\nrunning" if of.summary.head.driver else f"\nrunning when its {gone} died"
        rows = []
        for each in of.running:
            known = [number(each.resource), number(each.value), _lasted(each.started, now)]
            rows.append([str(each.trial), each.worker, each.node or NOTHING, *known])
        parts.append(table(_RUNNING, rows, width, title))
    if of.failures:
        rows = []
        for failure in of.failures:
            example = f"trial {failure.trial}: {first_line(failure.text)}"
            rows.append([failure.kind, str(failure.count), example])
        parts.append(table(_FAILURES, rows, width, "\nfailures"))
    if of.requests:
        parts.append(request_table(of.requests, width))
    return parts


def _lasted(started: float, now: float) -> str:
    return duration(max(0.0, now - started))


def study_facts(of: StudyStatus, now: float) -> dict[str, str]:
    summary, head = of.summary, of.summary.head
    facts = {
        "study": head.name,
        "state": summary.state + remark(summary),
        "trials": words.counted(summary.trials, summary.revision_runs) or "none yet",
    }
    if summary.best is not None:
        facts["best"] = best_so_far(summary)
    for limit in of.summary.budget:
        facts[LABELS[limit.name]] = _spent(limit)
    if of.reserved_gpu_seconds:
        facts["compute time"] += f" (and {duration(of.reserved_gpu_seconds)} reserved)"
    if ends := words.own_ends(of.ends):
        facts["own ends"] = ends
    if devices := words.by_device(of):
        facts["by device"] = devices
    if shared := words.sharing(of):
        facts["GPUs"] = shared
    if of.trials_per_hour is not None:
        facts["speed"] = pace(of, now)
    if more := words.next_hour(of.next_hour):
        facts["more"] = more
    idle = of.idle_share(now)
    if idle is not None:
        facts["idle slots"] = f"{idle:.0%} of the workers' time"
    for each in of.aside:
        facts["node trouble"] = f"{moment(each.created)}: {first_line(each.why)}"
    facts["created"] = moment(head.created)
    return facts


def best_so_far(summary: StudySummary) -> str:
    if summary.best is None:
        return NOTHING
    trial, value = summary.best.trial, best_value(summary)
    text = f"{value}, trial {trial.number}: {numbers.pairs(trial.params)}"
    shown = f" (its best value so far: {number(trial.value)})"
    return text + shown if "again" in value else text


def pace(of: StudyStatus, now: float) -> str:
    """The trials that end in an hour, and the time that the rest takes if that can be said."""
    parts = []
    if of.trials_per_hour is not None:
        parts.append(f"{number(float(f'{of.trials_per_hour:.3g}'))} trials per hour")
    left = of.seconds_left(now)
    if left is not None:
        low, high = map(duration, of.seconds_left_between(now))
        parts.append(f"about {duration(left)} left ({low} to {high})")
    return ", ".join(parts) or "too early to tell"


def remark(summary: StudySummary) -> str:
    """The words after a study's state: its driver, or the reason why it has none."""
    head = summary.head
    if head.driver:
        stopping = ", asked to stop" if head.stop_requested else ""
        return f", {'asked' if head.is_asked else 'driven'} by {head.driver}{stopping}"
    if summary.state is DrivenState.WAITING:
        return f' to be asked; in Python: hpsearch.resume(url, "{head.name}")'
    if summary.state is DrivenState.ABANDONED:
        return f": its driver died; continue with: hpsearch resume {head.name}"
    is_more = head.reason and head.reason != head.state.value
    reason = f": {head.reason}" if is_more else ""
    gave_up = summary.state is DrivenState.FAILED and not head.is_asked
    return (
        f"{reason}; mend it, then: hpsearch resume {head.name} --retry failed"
        if gave_up
        else reason
    )


def _spent(limit: BudgetLine) -> str:
    """A line of the budget: what is used, of how much, and what is left."""
    if limit.name == "trials":
        most = "" if limit.most is None else f" of {number(limit.most)}"
        return count(int(limit.used), "trial") + most
    if limit.most is None:
        return words.of_limit(limit)
    left = BudgetLine(limit.name, max(0.0, limit.most - limit.used), None)
    return f"{words.of_limit(limit)}, {words.of_limit(left)} left"


def request_table(requests: Sequence[Request], width: Width) -> Table:
    """The latest of all requests, which are given the oldest first, as a table in that order."""
    more = len(requests) - MOST_REQUESTS
    title = "\nasked while it ran" + (f" (and {more} before)" if more > 0 else "")
    rows = []
    for each in requests[-MOST_REQUESTS:]:
        who = [moment(each.created or None), each.origin or NOTHING]
        rows.append([*who, words.request_in_words(each), words.answer_in_words(each)])
    return table(("when", "by", "what", "answer"), rows, width, title)


def result_tables(
    result: StudyResult, status: StudyStatus, next_commands: Sequence[tuple[str, str]], width: Width
) -> list[RenderableType]:
    """The sentence that opens the result, the parameters of the best configuration, the commands to
    go on with, each with what it does, and how sure it is and what it cost."""
    parts: list[RenderableType] = ["".join(words.opening(result, status.summary))]
    if result.no_effect is not None:
        parts.append(result.no_effect.warning)
    if result.best is not None:
        trial = result.best.trial
        params = {name: cell(value) for name, value in trial.params.items()}
        parts.append(fact_table(params, width, f"\nbest configuration: trial {trial.number}"))
    elif result.ranked:
        title = "\nconfigurations that no other beats in all objectives"
        parts.append(best(result.ranked, width, result.metrics, title=title))
    if next_commands:
        parts.append(fact_table(dict(next_commands), width, "\nto go on"))
    parts.append(fact_table(words.in_detail(result, status), width, "\nin detail"))
    return parts


BAR = 24  # columns of a bar
MOST_DECISIONS = 5
AROUND = 18  # lines of a panel beside its running trials, at the most
CHANGING = frozenset(DecisionKind) - {DecisionKind.START, DecisionKind.CONTINUE, DecisionKind.DROP}
"""The decisions that change how a study stands."""


def panel(of: StudyStatus, decided: Sequence[str], now: float, height: int) -> RenderableType:
    """A running study, on a terminal of that many lines, with the latest decisions in words."""
    parts: list[RenderableType] = [_facts_with_bars(of, now)]
    if of.running:
        parts += [Text(), _running_with_bars(of, now, max(1, height - AROUND))]
    if decided:
        parts += [Text(), Text("decided", style="bold")]
    for each in decided[-MOST_DECISIONS:]:
        line = plain(each)
        line.no_wrap, line.overflow = True, "ellipsis"
        parts.append(line)
    return Group(*parts)


def _facts_with_bars(of: StudyStatus, now: float) -> Table:
    summary = of.summary
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    grid.add_row("study", plain(f"{summary.head.name}, {summary.state}{remark(summary)}"))
    grid.add_row("trials", words.counted(summary.trials, summary.revision_runs) or "none yet")
    for limit in of.summary.budget:
        if limit.most is not None:
            row = Table.grid(padding=(0, 1))
            row.add_row(_bar(limit.used, limit.most), words.of_limit(limit))
            grid.add_row(words.BUDGET_WORDS[limit.name], row)
    for limit in of.summary.budget:
        if limit.name == "gpu_seconds" and limit.most is None:
            grid.add_row(words.BUDGET_WORDS[limit.name], duration(limit.used))
    grid.add_row("best", plain(best_so_far(summary)))
    grid.add_row("pace", pace(of, now))
    return grid


def _bar(used: float, most: float | None) -> ProgressBar:
    return ProgressBar(total=most, completed=min(used, most or 0.0), width=BAR)


def _running_with_bars(of: StudyStatus, now: float, most: int) -> Table:
    """The running trials, each with a bar where their full budget is known."""
    budget = of.summary.head.budget
    per_trial = None if budget is None else budget.per_trial
    total = None if per_trial is None else per_trial.total
    unit = "resource" if per_trial is None else per_trial.unit.value
    any_gpu = any(each.gpu is not None for each in of.running)
    heads = ["trial", "worker", unit, "", "speed", "value", "time", *["GPU"] * any_gpu]
    grid = Table.grid(padding=(0, 2), expand=True)
    for _ in heads:
        grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # it takes what is left
    grid.add_row(*(Text(head, style="bold") for head in [*heads, "last decision"]))
    for each in of.running[:most]:
        cells: list[RenderableType] = [
            str(each.trial),
            plain(each.worker),
            _bar(each.resource, total),
            f"{number(each.resource)} of {number(total)}",
            NOTHING if each.speed is None else speed(each.speed),
            number(each.value),
            _lasted(each.started, now),
        ]
        if any_gpu:
            cells.append(NOTHING if each.gpu is None else f"{each.gpu:.0%}")
        grid.add_row(*cells, plain(each.last_decision or NOTHING))
    if len(of.running) > most:
        grid.add_row(f"and {len(of.running) - most} more")
    return grid


def speed(per_second: float) -> str:
    """Resource per second, or per minute or hour where that is easier to read."""
    for seconds, unit in ((1, "s"), (60, "min")):
        if per_second * seconds >= 1:
            return f"{number(per_second * seconds)}/{unit}"
    return f"{number(per_second * 3600)}/h"
