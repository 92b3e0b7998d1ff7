"""Limits of SLURM's partitions that a job would wait behind for ever."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpsearch.errors import UserError
from hpsearch.running.slurm.options import SbatchOption
from hpsearch.running.slurm.programs import answer_of

_FIELDS = "%P|%D|%c|%m|%l|%s"
_SIZES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


@dataclass
class _Partition:
    nodes: int  # how many it has
    cores: int  # of its largest node
    memory_mb: int  # of its largest node
    time: str  # the most of a job, as SLURM writes it
    job_nodes: str  # the most of a job, or "infinite"


def refuse_beyond(options: Sequence[SbatchOption]) -> None:
    """Refuse a job that asks for more than any of its partitions has or allows, and an array with
    larger indices than SLURM's. What SLURM does not say is left to sbatch."""
    given = {option.name: option.value for option in options if option.value}
    problems = [list(_problems(name, each, given)) for name, each in _partitions(given)]
    if problems and all(problems):
        raise UserError(problems[0][0], "see what there is: sinfo --summarize")
    found = re.search(r"MaxArraySize\s*= (\d+)", answer_of("scontrol", "show", "config"))
    indices = re.findall(r"(?<![:\d])\d+", given.get("array", "").partition("%")[0])
    if found and indices and max(map(int, indices)) >= int(found[1]):
        most = int(found[1]) - 1
        what = f"--array {given['array']} is beyond {most}, the largest index that SLURM allows"
        raise UserError(what, "give smaller indices, or several arrays: --array again")


def _partitions(given: dict[str, str]) -> Iterator[tuple[str, _Partition]]:
    """The partitions that a job names, or else the default one."""
    found: dict[str, _Partition] = {}
    for line in answer_of("sinfo", "--noheader", "--all", "--exact", f"--format={_FIELDS}").split():
        name, nodes, cores, memory, time, size = line.split("|")
        each = found.setdefault(name, _Partition(0, 0, 0, time, size.rpartition("-")[2]))
        each.nodes += int(nodes)
        each.cores = max(each.cores, int(cores))
        each.memory_mb = max(each.memory_mb, int(memory))
    wanted = given.get("partition", "").split(",")
    for name, each in found.items():
        if name.rstrip("*") in wanted or (wanted == [""] and name.endswith("*")):
            yield name.rstrip("*"), each


def _problems(name: str, partition: _Partition, given: dict[str, str]) -> Iterator[str]:
    nodes = _number(given.get("nodes"))
    if nodes > partition.nodes:
        yield f"--nodes {given['nodes']} is more than partition {name} has: {partition.nodes}"
    if _number(given.get("cpus-per-task")) > partition.cores:
        asked = f"--cpus-per-task {given['cpus-per-task']}"
        yield f"{asked} is more than a node of partition {name} has: {partition.cores}"
    if _number(given.get("mem")) > partition.memory_mb:
        asked = f"--mem {given['mem']}"
        yield f"{asked} is more than a node of partition {name} has: {partition.memory_mb} MB"
    if "qos" in given:  # it may allow more than the partition
        return
    if nodes > _number(partition.job_nodes, math.inf):
        asked = f"--nodes {given['nodes']}"
        yield f"{asked} is more than a job may have in partition {name}: {partition.job_nodes}"
    if seconds(given.get("time")) > seconds(partition.time, math.inf):
        asked = f"--time {given['time']}"
        yield f"{asked} is more than a job may have in partition {name}: {partition.time}"


def _number(text: str | None, otherwise: float = 0.0) -> float:
    """The first number in a text, in MB if it is a size of memory."""
    found = re.match(r"(\d+)([KMGT]?)", text or "", re.IGNORECASE)
    return int(found[1]) * _SIZES[found[2].upper() or "M"] if found else otherwise


def seconds(text: str | None, otherwise: float = 0.0) -> float:
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
