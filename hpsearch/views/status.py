"""Where one study stands, and one trial's story, as text and tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpsearch.lifecycle import State
from hpsearch.store.queries import TrialDetail
from hpsearch.store.standing import Limit, StudyStatus
from hpsearch.views.numbers import NOTHING, cell, count, duration, moment, number, pairs, size
from hpsearch.views.tables import NUMERIC, Head, score, table, values, with_named


def status(of: StudyStatus, now: float, width: int | None, disk: int | None = None) -> list[RenderableType]:
    """Facts of a study, its running attempts and its failures.

    Args:
        of: Where it stands.
        now: The time.
        width: Columns of the terminal; None where the output goes elsewhere.
        disk: Bytes that its checkpoints take, as far as that is known.
    """
    facts = _study_facts(of)
    if disk is not None:
        facts["checkpoints"] = f"{size(disk)} in {of.summary.head.checkpoints}"
    parts: list[RenderableType] = [_facts(facts, width)]
    if of.running:
        running = table(
            ("trial", NUMERIC), "worker", "node", ("resource", NUMERIC), ("value", NUMERIC), ("for", NUMERIC),
            width=width, title="\nrunning" if of.summary.driver else "\nrunning when its driver died",
        )  # fmt: skip
        for each in of.running:
            running.add_row(
                str(each.trial), each.worker, each.node or NOTHING, number(each.resource),
                number(each.value), duration(max(0.0, now - each.started)),
            )  # fmt: skip
        parts.append(running)
    if of.failures:
        failures = table("failed", ("trials", NUMERIC), "such as", width=width, title="\nfailures")
        for kind in of.failures:
            failures.add_row(kind.kind, str(kind.count), f"trial {kind.trial}: {first_line(kind.text)}")
        parts.append(failures)
    return parts


def trial(of: TrialDetail, width: int | None, disk: int | None = None) -> list[RenderableType]:
    """Everything known of one trial."""
    row = of.trial
    facts = {
        "trial": f"{row.number}, {row.state.value}" + ("" if row.role == "search" else f", {_role(of)}"),
        "value": values(row) + (f", oversteps limits by {row.violation:.1%}" if row.violation else ""),
        "resource": number(row.resource),
        "seed": str(row.seed),
        "GPU time": duration(row.gpu_seconds) + ("" if row.cost is None else f", cost {number(row.cost)}"),
        "started": moment(row.started),
        "ended": moment(row.ended),
        "checkpoint": row.checkpoint or (NOTHING if not of.attempts or not row.state.terminal else "not kept"),
    }
    if disk and row.checkpoint:
        facts["checkpoint"] += f" ({size(disk)} with those before it)"
    if row.error_kind:
        facts["error"] = f"{row.error_kind}: {row.error_text or ''}"
    parts: list[RenderableType] = [
        _facts(facts, width),
        _facts({name: cell(v) for name, v in row.params.items()}, width, title="\nparameters"),
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


def first_line(text: str | None, longest: int = 200) -> str:
    """The line of an error that tells most: the last of a traceback, the first of anything else."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if not lines:
        return NOTHING
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _study_facts(of: StudyStatus) -> dict[str, str]:
    summary, head = of.summary, of.summary.head
    counts = [f"{n} {each.value}" for each in State if (n := summary.trials.get(each, 0))]
    facts = {"study": head.name, "state": summary.state, "trials": ", ".join(counts) or "none yet"}
    if summary.driver:
        facts["state"] += f", driven by {summary.driver}" + (", asked to stop" if head.stop_requested else "")
    elif summary.state == "abandoned":
        facts["state"] += f": its driver died; `hpsearch resume {head.name}` goes on"
    elif head.reason:
        facts["state"] += f": {head.reason}"
    if summary.best is not None:
        found = summary.best.trial
        facts["best"] = f"{score(summary.best)}, trial {found.number}: {pairs(found.params)}"
    facts |= {_LABELS[limit.name]: _spent(limit) for limit in of.budget}
    if of.reserved_gpu_seconds:
        facts["GPU time"] += f" (and {duration(of.reserved_gpu_seconds)} reserved)"
    if of.trials_per_hour is not None:
        facts["speed"] = f"{number(float(f'{of.trials_per_hour:.3g}'))} trials an hour"
    facts["created"] = moment(head.created)
    return facts


_LABELS = {"trials": "budget", "gpu_seconds": "GPU time", "wall_clock_seconds": "wall clock", "cost": "cost"}


def _spent(limit: Limit) -> str:
    """A line of the budget: what is used, of how much, and what is left."""
    if limit.name == "trials":
        used = count(int(limit.used), "trial")
        return used if limit.most is None else f"{used} of {number(limit.most)}"
    write = duration if limit.name.endswith("seconds") else number
    if limit.most is None:
        return write(limit.used)
    return f"{write(limit.used)} of {write(limit.most)}, {write(max(0.0, limit.most - limit.used))} left"


def _role(of: TrialDetail) -> str:
    repeats = of.trial.repeats
    return {"default": "the default settings", "enqueued": "asked for"}.get(
        of.trial.role, f"repeats trial {repeats}" if repeats is not None else of.trial.role
    )


def _findings(of: TrialDetail, width: int | None) -> Table:
    made = table("finding", "severity", "evidence", width=width, title="\nhealth")
    for each in of.findings:
        made.add_row(each["name"], each["severity"], each["evidence"])
    return made


def _reports(of: TrialDetail, width: int | None) -> Table:
    heads: list[Head] = [("resource", NUMERIC), ("value", NUMERIC), ("trained", NUMERIC)]

    def cells(report: Mapping[str, Any]) -> list[str | Text]:
        return [number(report["resource"]), number(report["value"]), duration(report["elapsed"])]

    made = with_named(of.reports, heads, cells, lambda report: report["metrics"], "metrics", width)
    made.title = "\nreports"
    return made


def _attempts(of: TrialDetail, width: int | None) -> Table:
    heads: list[Head] = [("attempt", NUMERIC), "worker", "device", "started", "outcome", ("GPU time", NUMERIC), "note"]
    made = table(*heads, width=width, title="\nattempts")
    for each in of.attempts:
        made.add_row(
            str(each["number"]),
            each["worker"] + (f" on {each['node']}" if each["node"] else ""),
            each["device"] or NOTHING,
            moment(each["started"]),
            each["outcome"] or "running",
            duration(each["gpu_seconds"]),
            first_line(each["note"]),
        )
    return made


def _decisions(of: TrialDetail, width: int | None) -> Table:
    made = table("decided", ("at", NUMERIC), "why", "compared with", width=width, title="\ndecisions")
    for each in of.decisions:
        against = ", ".join(map(str, each["against"])) or NOTHING
        made.add_row(each["kind"], number(each["resource"]), each["why"], against)
    return made


def _facts(facts: Mapping[str, Any], width: int | None, title: str | None = None) -> Table:
    made = table(width=width, title=title)
    made.box, made.show_header, made.padding = None, False, (0, 2, 0, 0)
    made.add_column(style="dim" if width else None, no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in facts.items():
        made.add_row(name, str(value))
    return made
