"""The history of a trial, and trials side by side, as text and tables for a terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from hpsearch.domain.facts import Role
from hpsearch.domain.numbers import NOTHING, cell, count, duration, first_line, moment, number, size
from hpsearch.search.ranking.repeats import expectation
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.views.result import common_levels, differences, parameter_names
from hpsearch.views.terminal.tables import NUMERIC, Head, Width, fact_table, table, with_named
from hpsearch.views.words import expected, values, version

_FINDINGS = ("finding", "severity", "evidence")
_REPORTS = (("resource", NUMERIC), ("value", NUMERIC), ("trained", NUMERIC))
_ATTEMPTS = (
    *(("attempt", NUMERIC), "worker", "device", "started", "outcome"),
    *(("compute time", NUMERIC), "note"),
)
_DECISIONS = ("decision", ("at", NUMERIC), "reason", "compared with")


def trial(
    detail: TrialDetail, width: Width, disk: int | None = None, log: str | None = None
) -> list[RenderableType]:
    """Everything that is recorded about one trial; with the bytes that the folder of its checkpoint
    takes on the disk, if they are known, and the place of the log of its latest attempt, if any."""
    facts = _trial_facts(detail, disk) | ({} if log is None else {"log": log})
    params = {name: cell(value) for name, value in detail.trial.params.items()}
    parts: list[RenderableType] = [fact_table(facts, width)]
    parts.append(fact_table(params, width, "\nparameters"))
    if detail.findings:
        found = [(each.name, each.severity.value, each.evidence) for each in detail.findings]
        parts.append(table(_FINDINGS, found, width, "\nhealth"))
    if detail.reports:
        reports = []
        for each in detail.reports:
            cells = [number(each["resource"]), number(each["value"]), duration(each["elapsed"])]
            reports.append((cells, each["metrics"]))
        parts.append(with_named(_REPORTS, reports, width, "\nreports", "metrics"))
    if detail.attempts:
        parts.append(table(_ATTEMPTS, map(_attempt, detail.attempts), width, "\nattempts"))
    if detail.decisions:
        parts.append(table(_DECISIONS, map(_decision, detail.decisions), width, "\ndecisions"))
    return parts


def _trial_facts(detail: TrialDetail, disk: int | None) -> dict[str, str]:
    row = detail.trial
    known = {Role.SEARCH: "", Role.DEFAULT: ", the default settings"}
    role = known.get(row.role, f", {row.role}")
    role = role if row.repeats is None else f", repeats trial {row.repeats}"
    role = role if row.revision_run is None else f", runs {row.revision_run}"
    over = f", exceeds limits by {row.violation:.1%}" if row.violation else ""
    has_trained_on = row.seen_at not in (None, row.resource)
    best = f" at {number(row.seen_at)}, the best on the way" if has_trained_on else ""
    facts = {"trial": f"{row.number}, {row.state.value}{role}", "value": values(row) + best + over}
    if has_trained_on:
        facts["last"] = number(row.last)
    if expectation(row) is not None:
        facts["if trained again"] = f"{expected(row)} (90%)"
    cost = "" if row.cost is None else f", cost {number(row.cost)}"
    facts |= {
        "resource": number(row.ended_at),
        "seed": str(row.seed),
        "compute time": duration(row.gpu_seconds) + cost,
        "started": moment(row.started),
        "ended": moment(row.ended),
        "checkpoint": _checkpoint(detail, disk),
    }
    if detail.version is not None:
        facts["trained in"] = version(detail.version)
    computed = [each["arithmetic"] for each in detail.attempts if each["arithmetic"] is not None]
    if computed:
        facts["computed"] = _computed(computed[-1])
    if row.error_kind:
        facts["error"] = f"{row.error_kind}: {row.error_text or ''}"
    return facts


def _checkpoint(detail: TrialDetail, disk: int | None) -> str:
    row = detail.trial
    if row.checkpoint:
        return row.checkpoint + (f" (its folder takes {size(disk)})" if disk else "")
    return "not kept" if detail.attempts and row.state.terminal else NOTHING


def _computed(arithmetic: Mapping[str, Any]) -> str:
    threads = count(arithmetic["threads"], "thread")
    versions = arithmetic.get("versions") or {}
    parts = [arithmetic.get("precision"), threads, arithmetic.get("device")]
    parts += [f"{name} {version}" for name, version in versions.items()]
    return ", ".join(part for part in parts if part)


def _attempt(row: Mapping[str, Any]) -> Sequence[str]:
    node = f" on {row['node']}" if row["node"] else ""
    device, outcome = row["device"] or NOTHING, row["outcome"] or "running"
    where = (str(row["number"]), row["worker"] + node, device, moment(row["started"]))
    return (*where, outcome, duration(row["gpu_seconds"]), first_line(row["note"]))


def _decision(row: Mapping[str, Any]) -> Sequence[str]:
    against = ", ".join(map(str, row["against"])) or NOTHING
    return row["kind"], number(row["resource"]), row["why"], against


MOST_LEVELS = 12  # resource levels at which values are compared, at the most

_FACTS: dict[str, Callable[[TrialDetail], str]] = {
    "state": lambda detail: detail.trial.state.value,
    "value": lambda detail: values(detail.trial),
    "if trained again (90%)": lambda detail: expected(detail.trial),
    "resource": lambda detail: number(detail.trial.resource),
    "compute time": lambda detail: duration(detail.trial.gpu_seconds),
    "attempts": lambda detail: str(len(detail.attempts)),
    "error": lambda detail: detail.trial.error_kind or NOTHING,
    "last decision": lambda detail: _last_decision(detail),
}


def comparison(trials: Sequence[TrialDetail], width: Width) -> list[RenderableType]:
    """Tables with a column for each of two or more trials: its facts, the parameters in which they
    differ, and its values at the levels that all of them reached."""
    heads: list[Head] = ["", *((f"trial {each.trial.number}", NUMERIC) for each in trials)]
    facts = [[name, *map(fact, trials)] for name, fact in _FACTS.items()]
    parts: list[RenderableType] = [table(heads, facts, width)]
    differing = differences(trials)
    if differing:
        params = [[name, *map(cell, found)] for name, found in differing.items()]
        parts.append(table(heads, params, width, "\nparameters that differ"))
    alike = len(parameter_names(trials)) - len(differing)
    parts.append(f"{count(alike, 'parameter')} alike" if differing else "\nthe same parameters")
    if levels := common_levels(trials):
        rows = []
        for level in _thinned(levels):
            values_there = [each.trial.reports[level].value for each in trials]
            rows.append([number(level), *map(number, values_there)])
        parts.append(table(heads, rows, width, "\nvalues at the same resource"))
    return parts


def _thinned(levels: Sequence[float]) -> Sequence[float]:
    """At most so many of them, the first and the last included."""
    if len(levels) <= MOST_LEVELS:
        return levels
    step = (len(levels) - 1) / (MOST_LEVELS - 1)
    return [levels[round(place * step)] for place in range(MOST_LEVELS)]


def _last_decision(detail: TrialDetail) -> str:
    if not detail.decisions:
        return NOTHING
    last = detail.decisions[-1]
    return f"{last['kind']}: {last['why']}"
