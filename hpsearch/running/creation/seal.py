"""The code and data of a task as digests, which tell whether trials compare.

What a version of a study is sealed with must stay as it is while that version goes on:

- a function: its module, what that imports from its folder, and the files that `args` name;
- a command: the sources and configurations that it names, and what these import or name. Its other
  words may be files that it writes. And its harness, which `measure` needs;
- a built-in task: its data, a folder by the names and sizes of its files.

Imports are read, not run. Where a program imports by names that it makes up, all sources of its
folder that git tracks belong to it.
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hpsearch.study_file.models import StudySpec
from trials.contract import ProgramFailed
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND, harness_of, line_of
from trials.tasks.command import checkout
from trials.tasks.function import own

GIT_S = 10  # how long git may take to answer

SCRIPTS = frozenset({".bash", ".jl", ".lua", ".pl", ".py", ".r", ".R", ".sh"})
SOURCES = SCRIPTS | {".c", ".cc", ".cpp", ".cu", ".go", ".h", ".hpp", ".java", ".js", ".rs"}
CONFIGURATIONS = frozenset({".cfg", ".gin", ".ini", ".toml", ".yaml", ".yml"})
_NAMED = re.compile(rb"[\w./-]+\.(?:py|sh|bash|pl|jl|lua|[rR])\b")


@dataclass(frozen=True)
class Seal:
    """Digests (SHA-256) by path from the folder of the study file.

    Attributes:
        files: Those of all files that the task names or imports.
        binding: Those that must stay as they are.
        fingerprint: That of all `files`; None without any.
    """

    files: Mapping[str, str]
    binding: Mapping[str, str]
    fingerprint: str | None


def seal_of(spec: StudySpec) -> Seal:
    """Read all that a task is sealed with."""
    base, is_command = spec.base, spec.task["kind"] == COMMAND.kind
    named = [base / name for name in _names(spec) if _is(Path.is_file, base / name)]
    binding = [path for path in named if not is_command or _is_code(path, spec)]
    beside = [each for path in binding for each in _belonging(path, spec)]
    whole = hashlib.sha256()
    found = checkout.digests(base, dict.fromkeys([*named, *beside]), whole)
    fingerprint = whole.hexdigest() if found else None
    kept_names = [os.path.relpath(path, base) for path in [*binding, *beside]]
    kept = {name: found[name] for name in kept_names}
    if spec.task["kind"] in BUILT_IN:
        folders = [base / name for name in _names(spec) if _is(Path.is_dir, base / name)]
        kept |= {os.path.relpath(folder, base): _listing(folder) for folder in folders}
    if is_command:
        measures = checkout.digests(base, harness_of(spec.task, base))
        found, kept = {**found, **measures}, {**kept, **measures}
    return Seal(found, kept, fingerprint)


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files of two seals that have changed. One that is in one of them alone has not: what is
    needed and missing shows by itself."""
    return sorted(name for name in before.keys() & now.keys() if before[name] != now[name])


def git(folder: Path, *words: str) -> str:
    """What git says of a folder; empty if it knows nothing of it."""
    with suppress(ProgramFailed):
        return checkout.git(folder, *words, patience_s=GIT_S)
    return ""


def _names(spec: StudySpec) -> list[str]:
    """The texts of the task that may name files: the words of a command, or the values of the
    settings in the order of their names, and last the module of a function."""
    task = spec.task
    if task["kind"] == COMMAND.kind:
        folder = Path(task.get("cwd", "."))
        words = line_of(task).plain_words
        modules = [name for flag, name in pairwise(words) if flag in ("-m", "--module")]
        words += [each for name in modules for each in _files_of(name)]
        return [str(folder / word) for word in words]
    settings = {**task.get("args", {}), **task}
    names = [value for _, value in sorted(settings.items()) if isinstance(value, str)]
    if task["kind"] not in BUILT_IN:
        names += _files_of(task["kind"].partition(":")[0])
    return names


def _files_of(module: str) -> list[str]:
    path = module.replace(".", "/")
    files = [f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py"]
    return [*files, *(f"src/{file}" for file in files)]


def _is_code(path: Path, spec: StudySpec) -> bool:
    program = line_of(spec.task).program
    is_program = program is not None and path == spec.base / spec.task.get("cwd", ".") / program
    return is_program or path.suffix in SOURCES | CONFIGURATIONS


def _belonging(program: Path, spec: StudySpec) -> list[Path]:
    """The files that a program imports or names, and that these do."""
    found: dict[Path, None] = {program: None}
    ahead, folder, is_whole = [program], program.parent, False
    while ahead:
        path = ahead.pop()
        names = own.imports_of(path) if path.suffix == ".py" else frozenset[str]()
        needed = own.imported(names, path.parent, folder, spec.base, spec.base / "src")
        if path.suffix in SCRIPTS - {".py"}:
            needed = _named_in(path, spec)
        if own.imports_by_name(names) and not is_whole:
            is_whole = True
            needed += _tracked(folder)
        new = [each for each in dict.fromkeys(needed) if each not in found]
        found.update(dict.fromkeys(new))
        ahead += new
    return sorted(found.keys() - {program})


def _named_in(path: Path, spec: StudySpec) -> list[Path]:
    names = [os.fsdecode(name) for name in _NAMED.findall(path.read_bytes())]
    files = [folder / name for name in names for folder in (path.parent, spec.base)]
    return [each for each in files if _is(Path.is_file, each)]


def _tracked(folder: Path) -> list[Path]:
    files = [folder / name for name in git(folder, "ls-files", "-z").split("\0")]
    return [each for each in files if each.suffix in SOURCES and _is(Path.is_file, each)]


def _listing(folder: Path) -> str:
    """The digest of the names and sizes of all files below a folder, hidden ones left out."""
    lines = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(each for each in names if not each.startswith(".")):
            path = Path(place, name)
            size = path.stat().st_size if _is(Path.is_file, path) else 0
            lines.append(f"{path.relative_to(folder)}\0{size}\n")
    return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    with suppress(OSError):  # a word may be too long for a name
        return kind(path)
    return False
