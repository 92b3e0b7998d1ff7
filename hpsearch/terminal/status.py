"""The status of a study, as text and tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request
from hpsearch.store.reading.standing import BudgetLine, Standing, StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.terminal.tables import NUMERIC, Head, Width, best_value, fact_table, table
from hpsearch.words.certainty import weakest_rung
from hpsearch.words.estimates import BUDGET_WORDS, by_device
from hpsearch.words.numbers import (
    NOTHING,
    count,
    duration,
    first_line,
    moment,
    number,
    pairs,
    size,
)
from hpsearch.words.requests import outcome, wish


def status(
    of: StudyStatus,
    now: float,
    width: Width,
    disk: int | None = None,
    trust: StudyTrust | None = None,
) -> list[RenderableType]:
    """Facts of a study, its running attempts and its failures; with the bytes that its checkpoints
    take on the disk and the trust in its rungs, as far as they are known."""
    facts = study_facts(of, now)
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
    if limit.name == "trials":
        return _spent_trials(limit)
    is_time = limit.name.endswith("seconds")
    write = duration if is_time else number
    used = write(limit.used)
    if limit.most is None:
        return used
    most = write(limit.most)
    left = max(0.0, limit.most - limit.used)
    return f"{used} of {most}, {write(left)} left"


def _spent_trials(limit: BudgetLine) -> str:
    used = count(int(limit.used), "trial")
    if limit.most is None:
        return used
    return f"{used} of {number(limit.most)}"


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
