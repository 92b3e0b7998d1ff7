"""Limits of partitions behind which a job would wait for ever: sbatch alone accepts such jobs."""

import math
import os
import re
from collections.abc import Sequence

from hpsearch.errors import UserError
from hpsearch.plugins.slurm.options import SbatchOption
from hpsearch.plugins.slurm.programs import answer_of


def refuse_beyond(options: Sequence[SbatchOption]) -> None:
    """Refuse a job that asks for more than each of its partitions has or allows."""
    given = {option.name: option.value for option in options if option.value}
    wanted = given.get("partition") or os.environ.get("SBATCH_PARTITION")
    partitions: dict[str, list[list[str]]] = {}  # of each, a row for each kind of node
    for row in answer_of("sinfo", "-h", "--all", "--exact", "--format=%P|%D|%c|%m|%l|%s").split():
        name, *values = row.split("|")
        if name.rstrip("*") in wanted.split(",") if wanted else name.endswith("*"):
            partitions.setdefault(name.rstrip("*"), []).append(values)
    problems = [_problem(name, rows, given) for name, rows in partitions.items()]
    if problems and all(problems):
        raise UserError(str(problems[0]), "see what there is: sinfo --summarize")


def _problem(name: str, rows: list[list[str]], given: dict[str, str]) -> str | None:
    nodes = sum(int(row[0]) for row in rows)
    cores = max(int(row[1]) for row in rows)
    _, _, _, time, size = rows[0]
    limits = [
        ("nodes", _count, f"partition {name} has", str(nodes)),
        ("cpus-per-task", _count, f"a node of partition {name} has", str(cores)),
    ]
    if "qos" not in given and "SBATCH_QOS" not in os.environ:  # which may allow more
        allowed = f"a job may have in partition {name}"
        limits.append(("nodes", _count, allowed, size.rpartition("-")[2]))
        limits.append(("time", _seconds, allowed, time))
    for option, measure, whose, limit in limits:
        if measure(given.get(option, "")) > measure(limit):
            return f"--{option} {given[option]} is more than {whose}: {limit}"
    return None


def _count(text: str) -> float:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else math.nan  # which is not more than anything, nor less


def _seconds(text: str) -> float:
    """A time as SLURM writes it: ``90`` minutes, ``1:30:00``, ``2-12``, ``infinite``."""
    if text.lower() in ("0", "-1", "infinite", "unlimited"):
        return math.inf
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text):
        return math.nan
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if not dash and len(parts) < 3:  # minutes come first
        parts.insert(0, 0)
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds
