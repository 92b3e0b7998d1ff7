"""The status of a study and the history of a trial, as text and tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Decision, Request
from hpsearch.ranking.selection import expectation
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.store.reading.standing import BudgetLine, Standing, StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.study_file.models import StudyBudget
from hpsearch.terminal.curve import curve
from hpsearch.terminal.panel import Picture, Running
from hpsearch.terminal.tables import (
    NUMERIC,
    Columns,
    Head,
    best_value,
    fact_table,
    heading,
    table,
    with_named,
)
from hpsearch.words.certainty import weakest_rung
from hpsearch.words.estimates import continued, expected, may_change, values
from hpsearch.words.numbers import NOTHING, cell, count, duration, moment, number, pairs, size
from hpsearch.words.requests import latest, outcome, wish


def status(
    of: StudyStatus,
    now: float,
    width: int | None,
    disk: int | None = None,
    trust: StudyTrust | None = None,
) -> list[RenderableType]:
    """Facts of a study, its running attempts and its failures.

    Args:
        of: The study's status.
        now: The time.
        width: Columns of the terminal; None if the output goes elsewhere.
        disk: Bytes that its checkpoints take, as far as that is known.
        trust: How far its rungs can be trusted.
    """
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


def picture(
    of: StudyStatus, budget: StudyBudget, decisions: Sequence[Decision], now: float
) -> Picture:
    """What the panel of a running study shows.

    Args:
        of: The study's status.
        budget: What the study file lets it spend.
        decisions: The latest, the newest last.
        now: The time.
    """
    running = []
    for each in of.running:
        row = Running(
            each.trial,
            each.worker,
            each.resource,
            max(0.0, now - each.started),
            each.speed,
            each.value,
            each.gpu,
            each.verdict,
        )
        running.append(row)
    return Picture(
        title=f"{of.summary.head.name}, {of.summary.state}{remark(of.summary)}",
        counts=of.summary.trials,
        workers=None,
        budget=of.budget,
        best=_best(of.summary),
        pace=_pace(of, now),
        total=budget.per_trial.total,
        unit=budget.per_trial.unit.value,
        running=running,
        decided=latest(decisions, of.requests),
    )


def _running(of: StudyStatus, now: float, width: int | None) -> Table:
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


def _failures(of: StudyStatus, width: int | None) -> Table:
    made = table("failed", ("trials", NUMERIC), "example", width=width, title="\nfailures")
    for each in of.failures:
        example = f"trial {each.trial}: {first_line(each.text)}"
        made.add_row(each.kind, str(each.count), example)
    return made


def trial(
    of: TrialDetail,
    width: int | None,
    disk: int | None = None,
    log: str | None = None,
) -> list[RenderableType]:
    """Everything that is recorded about one trial.

    Args:
        of: The trial.
        width: Columns of the terminal; None if the output goes elsewhere.
        disk: Bytes that the folder of its checkpoint takes, as far as that is known.
        log: Where the log of its latest attempt is; None if there is none.
    """
    params = {name: cell(value) for name, value in of.trial.params.items()}
    facts = _trial_facts(of, disk)
    if log is not None:
        facts["log"] = log
    parts: list[RenderableType] = [
        fact_table(facts, width),
        fact_table(params, width, "\nparameters"),
    ]
    if of.findings:
        parts.append(_findings(of, width))
    if of.reports:
        parts.append(_reports(of, width))
        points = [(report["resource"], report["value"]) for report in of.reports]
        drawn = curve([(at, value) for at, value in points if value is not None], width or 80)
        if drawn is not None:
            parts += [heading("\ncurve"), Text(drawn)]
    if of.attempts:
        parts.append(_attempts(of, width))
    if of.decisions:
        parts.append(_decisions(of, width))
    return parts


def _trial_facts(of: TrialDetail, disk: int | None) -> dict[str, str]:
    """A trial's facts, by their names on the screen."""
    row = of.trial
    role = "" if row.role is Role.SEARCH else f", {_role(of)}"
    over = f", exceeds limits by {row.violation:.1%}" if row.violation else ""
    cost = "" if row.cost is None else f", cost {number(row.cost)}"
    facts = {
        "trial": f"{row.number}, {row.state.value}{role}",
        "continues": continued(row).removeprefix("continues "),
        "value": values(row) + _seen_at(of) + over,
        "expected": f"{expected(row)} if trained in full (90%)",
        "resource": number(row.resource),
        "seed": str(row.seed),
        "compute time": duration(row.gpu_seconds) + cost,
        "started": moment(row.started),
        "ended": moment(row.ended),
        "checkpoint": _checkpoint(of, disk),
    }
    if row.continues is None:
        del facts["continues"]
    if expectation(row) is None:
        del facts["expected"]
    computed = [each["arithmetic"] for each in of.attempts if each["arithmetic"] is not None]
    if computed:
        facts["computed"] = _computed(computed[-1])
    if row.error_kind:
        facts["error"] = f"{row.error_kind}: {row.error_text or ''}"
    return facts


def _seen_at(of: TrialDetail) -> str:
    """How far a trial had trained when it showed its value, where it has trained further since."""
    row = of.trial
    if row.value is None or row.values is not None:
        return ""
    levels = [each["resource"] for each in of.reports if each["value"] == row.value]
    if not levels or min(levels) == row.resource:
        return ""
    return f" at {number(min(levels))}"


def _checkpoint(of: TrialDetail, disk: int | None) -> str:
    row = of.trial
    if row.checkpoint:
        takes = f" (its folder takes {size(disk)})" if disk else ""
        return row.checkpoint + takes
    has_ended = row.state.terminal
    return "not kept" if of.attempts and has_ended else NOTHING


def first_line(text: str | None, longest: int = 200) -> str:
    """The most useful line of an error: the last of a traceback, the first of anything else."""
    stripped = [line.strip() for line in (text or "").splitlines()]
    lines = [line for line in stripped if line]
    if not lines:
        return NOTHING
    is_traceback = lines[0].startswith("Traceback")
    line = lines[-1] if is_traceback else lines[0]
    if len(line) <= longest:
        return line
    return line[: longest - 1] + "…"


def study_facts(of: StudyStatus, now: float) -> dict[str, str]:
    """A study's facts, by their names on the screen."""
    summary, head = of.summary, of.summary.head
    facts = {
        "study": head.name,
        "state": summary.state + remark(summary),
        "trials": _trial_counts(summary) or "none yet",
    }
    if summary.best is not None:
        facts["best"] = _best(summary)
    for limit in of.budget:
        facts[LABELS[limit.name]] = _spent(limit)
    if of.reserved_gpu_seconds:
        facts["compute time"] += f" (and {duration(of.reserved_gpu_seconds)} reserved)"
    if of.trials_per_hour is not None:
        facts["speed"] = _pace(of, now)
    facts["created"] = moment(head.created)
    return facts


def _best(summary: StudySummary) -> str:
    """The best trial so far with its parameters."""
    if summary.best is None:
        return NOTHING
    found = summary.best.trial
    text = f"{best_value(summary)}, trial {found.number}: {pairs(found.params)}"
    if summary.best.confirmed is None and may_change(found):
        text += f" (its best value so far: {number(found.value)})"
    return f"{text}; it {continued(found)}" if found.continues is not None else text


def _pace(of: StudyStatus, now: float) -> str:
    """How many trials end in an hour, and how long the rest takes where that can be said."""
    parts = []
    if of.trials_per_hour is not None:
        parts.append(f"{number(float(f'{of.trials_per_hour:.3g}'))} trials per hour")
    left = of.seconds_left(now)
    if left is not None:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts) or "too early to tell"


def _trial_counts(summary: StudySummary) -> str:
    """How many trials are in each state, as far as any are."""
    counts = []
    for state in State:
        n = summary.trials.get(state, 0)
        if n:
            counts.append(f"{n} {state.value}")
    return ", ".join(counts)


def remark(summary: StudySummary) -> str:
    """What follows a study's state: who drives it, or why nobody does."""
    head = summary.head
    if summary.driver:
        stopping = ", asked to stop" if head.stop_requested else ""
        how = "asked" if head.is_asked else "driven"
        return f", {how} by {summary.driver}{stopping}"
    if summary.state is Standing.WAITING:
        return f' to be asked; in Python: hpsearch.resume(url, "{head.name}")'
    if summary.state is Standing.ABANDONED:
        return f": its driver died; continue with: hpsearch resume {head.name}"
    return f": {head.reason}" if head.reason else ""


LABELS = {
    "trials": "budget",
    "gpu_seconds": "compute time",
    "wall_clock_seconds": "wall clock",
    "cost": "cost",
}


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


def _role(of: TrialDetail) -> str:
    """What a trial is for, where it was not proposed by the search."""
    role, repeats = of.trial.role, of.trial.repeats
    if role is Role.DEFAULT:
        return "the default settings"
    if role is Role.ENQUEUED:
        return "enqueued"
    return role if repeats is None else f"repeats trial {repeats}"


def _findings(of: TrialDetail, width: int | None) -> Table:
    made = table("finding", "severity", "evidence", width=width, title="\nhealth")
    for each in of.findings:
        made.add_row(each.name, each.severity.value, each.evidence)
    return made


def _reports(of: TrialDetail, width: int | None) -> Table:
    heads: list[Head] = [("resource", NUMERIC), ("value", NUMERIC), ("trained", NUMERIC)]

    def cells(report: Mapping[str, Any]) -> list[str | Text]:
        return [number(report["resource"]), number(report["value"]), duration(report["elapsed"])]

    columns = Columns(heads, cells, lambda report: report["metrics"], "metrics")
    made = with_named(of.reports, columns, width)
    made.title = heading("\nreports")
    return made


def _attempts(of: TrialDetail, width: int | None) -> Table:
    heads: list[Head] = [("attempt", NUMERIC), "worker", "device", "started", "outcome"]
    made = table(*heads, ("compute time", NUMERIC), "note", width=width, title="\nattempts")
    for each in of.attempts:
        node = f" on {each['node']}" if each["node"] else ""
        made.add_row(
            str(each["number"]),
            each["worker"] + node,
            each["device"] or NOTHING,
            moment(each["started"]),
            each["outcome"] or "running",
            duration(each["gpu_seconds"]),
            first_line(each["note"]),
        )
    return made


def _computed(arithmetic: Mapping[str, Any]) -> str:
    """How an attempt computed, in a line: precision, threads, device and versions."""
    threads = count(arithmetic["threads"], "thread")
    versions = (f"{name} {version}" for name, version in (arithmetic.get("versions") or {}).items())
    parts = [arithmetic.get("precision"), threads, arithmetic.get("device"), *versions]
    return ", ".join(part for part in parts if part)


def _decisions(of: TrialDetail, width: int | None) -> Table:
    heads: list[Head] = ["decision", ("at", NUMERIC), "reason", "compared with"]
    made = table(*heads, width=width, title="\ndecisions")
    for each in of.decisions:
        against = ", ".join(map(str, each["against"])) or NOTHING
        made.add_row(each["kind"], number(each["resource"]), each["why"], against)
    return made


MOST_SHOWN = 5
"""How many of the latest requests a terminal shows."""


def asked(requests: Sequence[Request], width: int | None) -> Table:
    """The latest requests as a table, the newest last.

    Args:
        requests: All of them, the oldest first.
        width: Columns of the terminal; None if the table goes elsewhere.
    """
    more = len(requests) - MOST_SHOWN
    title = "\nasked while it ran" + (f" (and {more} before)" if more > 0 else "")
    made = table("when", "by", "what", "answer", width=width, title=title)
    for each in requests[-MOST_SHOWN:]:
        made.add_row(
            moment(each.created or None), each.origin or NOTHING, wish(each), outcome(each)
        )
    return made
