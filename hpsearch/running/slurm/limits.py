"""Limits of SLURM that a job would wait behind for ever."""

import math
import re
from collections.abc import Iterator, Sequence

from hpsearch.errors import UserError
from hpsearch.running.slurm.options import SbatchOption
from hpsearch.running.slurm.programs import answer_of

_FIELDS = "%P|%D|%c|%m|%l|%s"
_MB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


def refuse_beyond(options: Sequence[SbatchOption]) -> None:
    """Refuse a job that asks for more than any of its partitions has or allows, and an array with
    larger indices than SLURM's. What SLURM does not say is left to sbatch."""
    given = {option.name: option.value for option in options if option.value}
    rows = answer_of("sinfo", "--noheader", "--all", "--exact", f"--format={_FIELDS}").split()
    partitions: dict[str, list[list[str]]] = {}  # of each, a row for each kind of node
    for row in rows:
        name, *values = row.split("|")
        partitions.setdefault(name, []).append(values)
    wanted = given["partition"].split(",") if "partition" in given else []
    chosen = [
        list(_problems(name.rstrip("*"), rows, given))
        for name, rows in partitions.items()
        if name.rstrip("*") in wanted or (not wanted and name.endswith("*"))
    ]
    if chosen and all(chosen):
        raise UserError(chosen[0][0], "see what there is: sinfo --summarize")
    found = re.search(r"MaxArraySize\s*= (\d+)", answer_of("scontrol", "show", "config"))
    indices = re.findall(r"(?<![:\d])\d+", given.get("array", "").partition("%")[0])
    if found and indices and max(map(int, indices)) >= int(found[1]):
        what = f"--array {given['array']} is more than SLURM's largest index: {int(found[1]) - 1}"
        raise UserError(what, "give smaller indices, or several arrays: --array again")


def _problems(name: str, rows: list[list[str]], given: dict[str, str]) -> Iterator[str]:
    nodes, cores, memory = (list(map(int, column)) for column in list(zip(*rows, strict=True))[:3])
    time, size = rows[0][3], rows[0][4].rpartition("-")[2]
    limits = [
        ("nodes", _number, "partition {} has", str(sum(nodes))),
        ("cpus-per-task", _number, "a node of partition {} has", str(max(cores))),
        ("mem", _number, "a node of partition {} has", f"{max(memory)} MB"),
        ("nodes", _number, "a job may have in partition {}", size),
        ("time", seconds, "a job may have in partition {}", time),
    ]
    for option, measure, whose, limit in limits[: 3 if "qos" in given else 5]:  # it may allow more
        if measure(given.get(option), 0.0) > measure(limit, math.inf):
            yield f"--{option} {given[option]} is more than {whose.format(name)}: {limit}"


def _number(text: str | None, otherwise: float) -> float:
    """The first number in a text, in MB if it is a size of memory."""
    found = re.match(r"(\d+)([KMGT]?)", text or "", re.IGNORECASE)
    return int(found[1]) * _MB[found[2].upper() or "M"] if found else otherwise


def seconds(text: str | None, otherwise: float) -> float:
    """A time as SLURM writes it (``90``, ``1:30:00``, ``2-12``, ``UNLIMITED``) in seconds."""
    if text and text.lower() in ("0", "-1", "infinite", "unlimited"):
        return math.inf
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text or ""):
        return otherwise
    days, dash, rest = (text or "").rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if not dash and len(parts) < 3:  # minutes come first
        parts.insert(0, 0)
    hours, minutes, left = [*parts, 0, 0][:3]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + left
