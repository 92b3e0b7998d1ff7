"""Files that a trial writes to places which all trials of its study share.

Trials that run at once overwrite each other's files there, and a later one may take those of an
earlier one for its own.
"""

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpsearch.domain.plugins.offers import LibraryPlugin
from hpsearch.running.checkpoint_folders import DEFAULT_ROOT
from hpsearch.running.loading import library_of
from hpsearch.study_file.models import StudySpec
from trials.descriptions.command import COMMAND
from trials.descriptions.command_line import FOLDER
from trials.settings import some
from trials.tasks.command.program import open_for_writing

MOST_FILES = 20_000  # files and folders that are looked at, the nearest first
SHOWN = 3
_OTHERS = {"__pycache__", "node_modules", "wandb", "mlruns", DEFAULT_ROOT}
"""Places that trials share without harm: these give each run a folder of its own."""
_ENDINGS = re.compile(r"\.(?:pyc|(?:db|sqlite3?)(?:-\w+)?)$")

Stamp = tuple[int, int, int]  # inode, size and time of change


def written_by_others() -> set[Path]:
    """The files that some process has open for writing, once the trial has ended: those into which
    a shell leads the output, also by way of `tee`, and those of other programs. Linux only."""
    found: set[Path] = set()
    for handles in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):  # it ends meanwhile, or is another user's
            found.update(open_for_writing(handles))
    return found


class SharedFiles:
    """The files beside a study file and in the working directory, as they are now."""

    def __init__(self, spec: StudySpec) -> None:
        self._spec = spec
        own = spec.base / str(spec.task.get("cwd", "."))
        self._folders = {folder.resolve() for folder in (spec.base, own, Path.cwd())}
        self._before = dict(self._files())

    def _files(self) -> Iterator[tuple[Path, Stamp]]:
        waiting = deque(sorted(self._folders))
        seen: set[Path] = set()
        left = MOST_FILES
        while waiting and left > 0:
            folder = waiting.popleft()
            if folder in seen:
                continue
            seen.add(folder)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.name.startswith(".") or entry.name in _OTHERS:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif not _ENDINGS.search(entry.name):
                        facts = entry.stat()
                        yield Path(entry.path), (facts.st_ino, facts.st_size, facts.st_mtime_ns)

    def remarks(self) -> Iterator[str]:
        """A sentence on the files that have appeared or changed, and what to do."""
        changed = [path for path, stamp in self._files() if self._before.get(path) != stamp]
        others = written_by_others() if changed else set()
        written = sorted(path for path in changed if path not in others)
        if not written:
            return
        named = some(map(self._named, written), SHOWN)
        yield (
            f"the trial writes {named}, which all trials share: trials at once overwrite "
            f"each other's files, and may read another's; {self._advice()} (what all trials only "
            "read, such as data that the first one fetches, may stay there)"
        )

    def _named(self, path: Path) -> Path:
        base = self._spec.base.resolve()
        return path.relative_to(base) if path.is_relative_to(base) else path

    def _advice(self) -> str:
        task = self._spec.task
        if task["kind"] == COMMAND.kind:
            return f"let the command write into {{{FOLDER}}}, as with --out {{{FOLDER}}}"
        return (library_of(task) or LibraryPlugin).files
