"""The history of a trial, and trials side by side, as text and tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpsearch.domain.facts import Role
from hpsearch.domain.numbers import NOTHING, cell, count, duration, first_line, moment, number, size
from hpsearch.search.ranking.selection import expectation
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.views.result.comparison import common_levels, differences, parameter_names
from hpsearch.views.terminal.tables import (
    NUMERIC,
    Columns,
    Head,
    Width,
    fact_table,
    heading,
    table,
    with_named,
)
from hpsearch.views.words.estimates import expected, values


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

    columns = Columns(heads, cells, lambda report: report["metrics"])
    made = with_named(of.reports, columns, width, "metrics")
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


MOST_LEVELS = 12
"""Resource levels at which values are compared, at the most."""


def comparison(trials: Sequence[TrialDetail], width: Width) -> list[RenderableType]:
    """Tables with a column for each of two or more trials: its facts, the parameters in which they
    differ, and its values at the levels that all of them reached."""
    heads: list[Head] = ["", *((f"trial {each.trial.number}", NUMERIC) for each in trials)]
    parts: list[RenderableType] = []
    facts = table(*heads, width=width)
    for name, of in _FACTS.items():
        facts.add_row(name, *(of(each) for each in trials))
    parts.append(facts)
    differing = differences(trials)
    if differing:
        params = table(*heads, width=width, title="\nparameters that differ")
        for name, found in differing.items():
            params.add_row(name, *map(cell, found))
        parts.append(params)
    alike = len(parameter_names(trials)) - len(differing)
    parts.append(f"{count(alike, 'parameter')} alike" if differing else "\nthe same parameters")
    levels = common_levels(trials)
    if levels:
        values_at = table(*heads, width=width, title="\nvalues at the same resource")
        for level in _thinned(levels):
            values_at.add_row(number(level), *(number(_value_at(each, level)) for each in trials))
        parts.append(values_at)
    return parts


def _thinned(levels: Sequence[float]) -> list[float]:
    """At most so many of them, the first and the last included."""
    if len(levels) <= MOST_LEVELS:
        return list(levels)
    step = (len(levels) - 1) / (MOST_LEVELS - 1)
    return [levels[round(place * step)] for place in range(MOST_LEVELS)]


def _value_at(of: TrialDetail, level: float) -> float | None:
    for report in of.reports:
        if report["resource"] == level:
            found: float | None = report["value"]
            return found
    return None


def _last_decision(of: TrialDetail) -> str:
    if not of.decisions:
        return NOTHING
    last = of.decisions[-1]
    return f"{last['kind']}: {last['why']}"


_FACTS: dict[str, Callable[[TrialDetail], str]] = {
    "state": lambda of: of.trial.state.value,
    "value": lambda of: values(of.trial),
    "if trained again (90%)": lambda of: expected(of.trial),
    "resource": lambda of: number(of.trial.resource),
    "compute time": lambda of: duration(of.trial.gpu_seconds),
    "attempts": lambda of: str(len(of.attempts)),
    "error": lambda of: of.trial.error_kind or NOTHING,
    "last decision": _last_decision,
}
