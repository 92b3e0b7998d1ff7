"""A command for a short while, as it stands: the seed that its help names, and its reports."""

import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hpsearch.running.rehearsal.proposed_pattern import ProposedPattern, likeliest, proposals
from hpsearch.study_file.starters.draft import flow
from trials.checkpoints.disk import drafts
from trials.contract import ProgramFailed, Unit
from trials.descriptions.command_line import FOLDER, SEED, CommandLine
from trials.descriptions.programs import report_files
from trials.descriptions.report_pattern import RESOURCE
from trials.settings import some
from trials.tasks.command.program import LineReader, Program, own_environment
from trials.tasks.command.report_stream import FROM_0, JsonLines

LIMIT_S = 40.0  # seconds that a command is run for: Lightning alone takes ten to be imported
ENOUGH = 2  # reports after which it has shown what it prints
_SEED = re.compile(r"(?<![\w-])--(?:random[-_]?|rng[-_]|manual[-_])?(?:seed|state)(?![\w-])")
_SHELLS = ("sh", "bash", "zsh", "docker", "ssh", "srun")


class ProposedFiles(NamedTuple):
    """Files of a library's format that reports can be read from, as a `ProposedPattern`."""

    metric: str
    key: str
    reading: str


def seed_flag(words: Sequence[str], folder: Path) -> str | None:
    """The flag for a seed that the help of a command in a folder names; None without one."""
    scripts = [at for at, word in enumerate(words) if word.endswith(".py") or words[at - 1] == "-m"]
    flags = [at for at, word in enumerate(words) if word.startswith("-")]
    end = scripts[0] + 1 if scripts else min(flags, default=len(words))
    if not words or Path(words[0]).name in _SHELLS:
        return None
    lines = _printed([*words[:end], "--help"], folder, lambda lines: False)
    found = _SEED.search(b"\n".join(lines).decode(errors="replace"))
    return None if found is None else found[0]


def reports_of(
    run: str, values: Mapping[str, float], folder: Path, metric: str, unit: Unit
) -> Sequence[ProposedPattern | ProposedFiles]:
    """The patterns for what a command with placeholders prints in a folder, the likeliest first, or
    the files that it writes, where no pattern reads as much."""

    def is_enough(lines: Sequence[bytes]) -> bool:
        found = proposals(lines, metric, unit)
        return any(len(each.reports) >= ENOUGH for each in found) or _has_enough_files(own)

    with drafts.temporary("hpsearch-init-") as own:
        given = {**values, FOLDER: str(own), SEED: 0}
        words = CommandLine(run).filled({**dict.fromkeys(CommandLine(run).names), **given})
        printed = _printed(words, folder, is_enough)
        if any(True for line in printed for _ in JsonLines(RESOURCE).reports_in(line)):
            return []
        found = proposals(printed, metric, unit)
        files = _files_in(own, metric, unit)
        is_read = any(len(each.reports) >= ENOUGH for each in found)
        return files if files and not is_read else found


def _has_enough_files(folder: Path) -> bool:
    found = (files.found_in(folder) for _, files in report_files())
    return any(each is not None and len(each[1]) >= ENOUGH for each in found)


def _files_in(folder: Path, metric: str, unit: Unit) -> list[ProposedFiles]:
    for name, files in report_files():
        found = files.found_in(folder)
        if found is None:
            continue
        folders, rows = found
        names = {each for row in rows for each in row}
        counter = "epoch" if unit is Unit.EPOCHS and "epoch" in names else files.resource
        begin = FROM_0 if 0 in {row.get(counter) for row in rows} else ""
        key = f"report: {flow({name: folders})}\n  resource: {counter}{begin}"
        best = likeliest(names, metric) or metric
        return [ProposedFiles(best, key, f"files of {name}; they have {some(sorted(names))}")]
    return []


def _printed(
    words: Sequence[str], folder: Path, is_enough: Callable[[Sequence[bytes]], bool]
) -> list[bytes]:
    """The lines that a command prints until it ends, they are enough, or the time is over."""
    if not words or shutil.which(words[0]) is None:
        return []
    lines: list[bytes] = []
    readers = {"stdout": LineReader(), "stderr": LineReader()}
    give_up, look_again = time.monotonic() + LIMIT_S, 0.0
    try:
        program = Program(words, folder, own_environment())
    except ProgramFailed:
        return []
    try:
        while not program.over and time.monotonic() < give_up:
            for source, piece in program.read(0.2):
                lines += readers[source].lines(piece)
            if time.monotonic() > look_again:
                if is_enough([*lines, *(reader.rest for reader in readers.values())]):
                    break
                look_again = time.monotonic() + 1.0
    except ProgramFailed:
        return []
    finally:
        program.close()
    return [*lines, *(reader.rest for reader in readers.values())]
