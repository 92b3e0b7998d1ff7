"""The history of a trial, as text and tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpsearch.domain.facts import Role
from hpsearch.ranking.selection import expectation
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.terminal.tables import (
    NUMERIC,
    Columns,
    Head,
    Width,
    fact_table,
    heading,
    table,
    with_named,
)
from hpsearch.words.estimates import expected, values
from hpsearch.words.numbers import NOTHING, cell, count, duration, first_line, moment, number, size


def trial(
    of: TrialDetail, width: Width, disk: int | None = None, log: str | None = None
) -> list[RenderableType]:
    """Everything that is recorded about one trial; with the bytes that the folder of its checkpoint
    takes on the disk, if they are known, and the place of the log of its latest attempt, if any."""
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
        "value": values(row) + _seen_at(of) + over,
        "if trained again": f"{expected(row)} (90%)",
        "resource": number(row.resource),
        "seed": str(row.seed),
        "compute time": duration(row.gpu_seconds) + cost,
        "started": moment(row.started),
        "ended": moment(row.ended),
        "checkpoint": _checkpoint(of, disk),
    }
    if expectation(row) is None:
        del facts["if trained again"]
    computed = [each["arithmetic"] for each in of.attempts if each["arithmetic"] is not None]
    if computed:
        facts["computed"] = _computed(computed[-1])
    if row.error_kind:
        facts["error"] = f"{row.error_kind}: {row.error_text or ''}"
    return facts


def _seen_at(of: TrialDetail) -> str:
    """The resource at which a trial showed its value, if it has trained further since."""
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


def _role(of: TrialDetail) -> str:
    """The purpose of a trial that the search did not propose."""
    role, repeats = of.trial.role, of.trial.repeats
    if role is Role.DEFAULT:
        return "the default settings"
    if role is Role.ENQUEUED:
        return "enqueued"
    return role if repeats is None else f"repeats trial {repeats}"


def _findings(of: TrialDetail, width: Width) -> Table:
    made = table("finding", "severity", "evidence", width=width, title="\nhealth")
    for each in of.findings:
        made.add_row(each.name, each.severity.value, each.evidence)
    return made


def _reports(of: TrialDetail, width: Width) -> Table:
    heads: list[Head] = [("resource", NUMERIC), ("value", NUMERIC), ("trained", NUMERIC)]

    def cells(report: Mapping[str, Any]) -> list[str | Text]:
        return [number(report["resource"]), number(report["value"]), duration(report["elapsed"])]

    columns = Columns(heads, cells, lambda report: report["metrics"], "metrics")
    made = with_named(of.reports, columns, width)
    made.title = heading("\nreports")
    return made


def _attempts(of: TrialDetail, width: Width) -> Table:
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
    """The arithmetic of an attempt, in a line: precision, threads, device and versions."""
    threads = count(arithmetic["threads"], "thread")
    versions = (f"{name} {version}" for name, version in (arithmetic.get("versions") or {}).items())
    parts = [arithmetic.get("precision"), threads, arithmetic.get("device"), *versions]
    return ", ".join(part for part in parts if part)


def _decisions(of: TrialDetail, width: Width) -> Table:
    heads: list[Head] = ["decision", ("at", NUMERIC), "reason", "compared with"]
    made = table(*heads, width=width, title="\ndecisions")
    for each in of.decisions:
        against = ", ".join(map(str, each["against"])) or NOTHING
        made.add_row(each["kind"], number(each["resource"]), each["why"], against)
    return made
