"""The status of a study, the panel of a running one, and its result, for a terminal.

The panel has budgets and running trials as bars, and the latest decisions. The driver's own view
and `hpsearch status --watch` draw the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import (
    NOTHING,
    cell,
    count,
    duration,
    first_line,
    moment,
    number,
    pairs,
    size,
)
from hpsearch.domain.records import Request
from hpsearch.store.reading.standing import BudgetLine, Standing, StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.views.result.study_result import StudyResult
from hpsearch.views.terminal.escapes import plain
from hpsearch.views.terminal.tables import (
    NUMERIC,
    Head,
    Width,
    best,
    best_value,
    fact_table,
    heading,
    table,
)
from hpsearch.views.words.certainty import in_detail, opening, weakest_rung
from hpsearch.views.words.estimates import BUDGET_WORDS, by_device, of_limit
from hpsearch.views.words.requests import outcome, wish


def status(
    of: StudyStatus,
    now: float,
    width: Width,
    disk: int | None = None,
    trust: StudyTrust | None = None,
    suggested: Callable[[str], str] = str,
) -> list[RenderableType]:
    """Facts of a study, its running attempts and its failures; with the bytes that its checkpoints
    take on the disk and the trust in its rungs, as far as they are known. `suggested` makes
    commands in a text work for this database."""
    facts = study_facts(of, now)
    facts["state"] = suggested(facts["state"])
    weakest = None if trust is None else weakest_rung(trust)
    if weakest is not None:
        facts["rungs"] = weakest
    if disk is not None:
        limit = of.summary.head.checkpoint_limit_bytes
        most = "" if limit is None else f" of {size(round(limit))}"
        facts["checkpoints"] = f"{size(disk)}{most} in {of.summary.head.checkpoints}"
    parts: list[RenderableType] = [fact_table(facts, width)]
    if of.running:
        parts.append(_running(of, now, width))
    if of.failures:
        parts.append(_failures(of, width))
    if of.requests:
        parts.append(asked(of.requests, width))
    return parts


def _running(of: StudyStatus, now: float, width: Width) -> Table:
    gone = "process" if of.summary.head.is_asked else "driver"
    title = "\nrunning" if of.summary.driver else f"\nrunning when its {gone} died"
    heads: list[Head] = [("trial", NUMERIC), "worker", "node", ("resource", NUMERIC)]
    made = table(*heads, ("value", NUMERIC), ("time", NUMERIC), width=width, title=title)
    for each in of.running:
        made.add_row(
            str(each.trial),
            each.worker,
            each.node or NOTHING,
            number(each.resource),
            number(each.value),
            duration(max(0.0, now - each.started)),
        )
    return made


def _failures(of: StudyStatus, width: Width) -> Table:
    made = table("failed", ("trials", NUMERIC), "example", width=width, title="\nfailures")
    for each in of.failures:
        example = f"trial {each.trial}: {first_line(each.text)}"
        made.add_row(each.kind, str(each.count), example)
    return made


def study_facts(of: StudyStatus, now: float) -> dict[str, str]:
    """A study's facts, by their names on the screen."""
    summary, head = of.summary, of.summary.head
    facts = {
        "study": head.name,
        "state": summary.state + remark(summary),
        "trials": counted(summary.trials) or "none yet",
    }
    if summary.best is not None:
        facts["best"] = best_so_far(summary)
    for limit in of.budget:
        facts[LABELS[limit.name]] = _spent(limit)
    if of.reserved_gpu_seconds:
        facts["compute time"] += f" (and {duration(of.reserved_gpu_seconds)} reserved)"
    if devices := by_device(of):
        facts["by device"] = devices
    if of.trials_per_hour is not None:
        facts["speed"] = pace(of, now)
    idle = of.idle_share(now)
    if idle is not None:
        facts["idle slots"] = f"{idle:.0%} of the workers' time"
    for each in of.aside:
        facts["node trouble"] = f"{moment(each.created)}: {first_line(each.why)}"
    facts["created"] = moment(head.created)
    return facts


def counted(counts: Mapping[State, int]) -> str:
    """``2 running, 5 paused``; empty where there is no trial."""
    return ", ".join(f"{counts[state]} {state.value}" for state in State if counts.get(state))


def best_so_far(summary: StudySummary) -> str:
    """The best trial so far with its parameters."""
    if summary.best is None:
        return NOTHING
    found = summary.best.trial
    text = f"{best_value(summary)}, trial {found.number}: {pairs(found.params)}"
    if "again" in best_value(summary):
        text += f" (its best value so far: {number(found.value)})"
    return text


def pace(of: StudyStatus, now: float) -> str:
    """The trials that end in an hour, and the time that the rest takes if that can be said."""
    parts = []
    if of.trials_per_hour is not None:
        parts.append(f"{number(float(f'{of.trials_per_hour:.3g}'))} trials per hour")
    left = of.seconds_left(now)
    if left is not None:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts) or "too early to tell"


def remark(summary: StudySummary) -> str:
    """The words after a study's state: its driver, or the reason why it has none."""
    head = summary.head
    if summary.driver:
        stopping = ", asked to stop" if head.stop_requested else ""
        how = "asked" if head.is_asked else "driven"
        return f", {how} by {summary.driver}{stopping}"
    if summary.state is Standing.WAITING:
        return f' to be asked; in Python: hpsearch.resume(url, "{head.name}")'
    if summary.state is Standing.ABANDONED:
        return f": its driver died; continue with: hpsearch resume {head.name}"
    is_more = head.reason and head.reason != head.state.value
    return f": {head.reason}" if is_more else ""


LABELS = BUDGET_WORDS | {"trials": "budget"}
"""The limits of a budget, where `trials` are those by state."""


def _spent(limit: BudgetLine) -> str:
    """A line of the budget: what is used, of how much, and what is left."""
    is_trials = limit.name == "trials"
    if limit.most is None:
        return count(int(limit.used), "trial") if is_trials else of_limit(limit)
    if is_trials:
        return f"{count(int(limit.used), 'trial')} of {number(limit.most)}"
    left = BudgetLine(limit.name, max(0.0, limit.most - limit.used), None)
    return f"{of_limit(limit)}, {of_limit(left)} left"


MOST_SHOWN = 5
"""The number of latest requests that a terminal shows."""


def asked(requests: Sequence[Request], width: Width) -> Table:
    """The latest of all requests, which are given the oldest first, as a table in that order."""
    more = len(requests) - MOST_SHOWN
    title = "\nasked while it ran" + (f" (and {more} before)" if more > 0 else "")
    made = table("when", "by", "what", "answer", width=width, title=title)
    for each in requests[-MOST_SHOWN:]:
        made.add_row(
            moment(each.created or None), each.origin or NOTHING, wish(each), outcome(each)
        )
    return made


def result_tables(
    result: StudyResult,
    status: StudyStatus,
    next_commands: Sequence[tuple[str, str]],
    width: Width,
) -> list[RenderableType]:
    """The sentence that opens the result, the parameters of the best configuration, the commands to
    go on with, each with what it does, and how sure it is and what it cost."""
    parts: list[RenderableType] = ["".join(opening(result, status.summary))]
    if result.no_effect is not None:
        parts.append(result.no_effect.warning)
    if result.best is not None:
        trial = result.best.trial
        params = {name: cell(value) for name, value in trial.params.items()}
        title = f"\nbest configuration: trial {trial.number}"
        parts.append(fact_table(params, width, title))
    elif result.ranked:
        front = best(result.ranked, width, [metric for metric, _ in result.objectives])
        front.title = heading("\nconfigurations that no other beats in all objectives")
        parts.append(front)
    if next_commands:
        parts.append(fact_table(dict(next_commands), width, "\nto go on"))
    parts.append(fact_table(in_detail(result, status), width, "\nin detail"))
    return parts


BAR = 24
"""Columns of a bar."""
MOST_DECISIONS = 5
AROUND = 18
"""Lines of a panel beside its running trials, at the most."""

TELLING = frozenset(DecisionKind) - {DecisionKind.START, DecisionKind.CONTINUE, DecisionKind.DROP}
"""The decisions that change how a study stands."""


def panel(of: StudyStatus, decided: Sequence[str], now: float, height: int) -> RenderableType:
    """A running study, on a terminal of that many lines: with so many of its trials as there is
    room for.

    Args:
        decided: The latest decisions in words, the newest last.
        now: The time, in seconds since the epoch.
    """
    parts: list[RenderableType] = [_standing(of, now)]
    if of.running:
        parts += [Text(), _trials(of, now, max(1, height - AROUND))]
    if decided:
        parts += [Text(), Text("decided", style="bold")]
        parts += [_line(each) for each in decided[-MOST_DECISIONS:]]
    return Group(*parts)


def _line(text: str) -> Text:
    line = plain(text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _standing(of: StudyStatus, now: float) -> Table:
    summary = of.summary
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    table.add_row("study", plain(f"{summary.head.name}, {summary.state}{remark(summary)}"))
    table.add_row("trials", counted(summary.trials) or "none yet")
    for limit in of.budget:
        if limit.most is not None:
            table.add_row(BUDGET_WORDS[limit.name], _limit(limit))
    if all(limit.name != "gpu_seconds" or limit.most is None for limit in of.budget):
        spent = sum(limit.used for limit in of.budget if limit.name == "gpu_seconds")
        table.add_row(BUDGET_WORDS["gpu_seconds"], duration(spent))
    table.add_row("best", plain(best_so_far(summary)))
    table.add_row("pace", pace(of, now))
    return table


def _limit(limit: BudgetLine) -> Table:
    """A limit of the budget as a bar."""
    row = Table.grid(padding=(0, 1))
    most = limit.most or 0.0
    row.add_row(
        ProgressBar(total=most, completed=min(limit.used, most), width=BAR),
        of_limit(limit),
    )
    return row


def _trials(of: StudyStatus, now: float, most: int) -> Table:
    """The running trials, each with a bar where their full budget is known."""
    budget = of.summary.head.budget
    per_trial = None if budget is None else budget.per_trial
    total = None if per_trial is None else per_trial.total
    unit = "resource" if per_trial is None else per_trial.unit.value
    any_gpu = any(each.gpu is not None for each in of.running)
    table = Table.grid(padding=(0, 2), expand=True)
    heads = ["trial", "worker", unit, "", "speed", "value", "time"]
    heads += ["GPU", "last decision"] if any_gpu else ["last decision"]
    for _ in heads[:-1]:
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)  # it takes what is left
    table.add_row(*(Text(head, style="bold") for head in heads))
    for each in of.running[:most]:
        cells: list[RenderableType] = [
            str(each.trial),
            plain(each.worker),
            ProgressBar(total=total, completed=min(each.resource, total or 0.0), width=BAR),
            f"{number(each.resource)} of {number(total)}",
            NOTHING if each.speed is None else speed(each.speed),
            number(each.value),
            duration(max(0.0, now - each.started)),
        ]
        if any_gpu:
            cells.append(NOTHING if each.gpu is None else f"{each.gpu:.0%}")
        table.add_row(*cells, plain(each.verdict or NOTHING))
    left_out = len(of.running) - most
    if left_out > 0:
        table.add_row(f"and {left_out} more")
    return table


def speed(per_second: float) -> str:
    """Resource per second, or per minute or hour where that is easier to read."""
    if per_second >= 1:
        return f"{number(per_second)}/s"
    if per_second * 60 >= 1:
        return f"{number(per_second * 60)}/min"
    return f"{number(per_second * 3600)}/h"
