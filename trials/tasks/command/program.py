"""The processes of one program, seen from its run."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from trials.contract import ProgramFailed
from trials.running import watcher
from trials.tasks.command import starting

CHUNK_BYTES = 1 << 16
EVENTS = ".tfevents."
"""In the names of TensorBoard's files, which are logs, though some libraries hold them open."""
PATIENCE_S = 5.0
"""The time that the watcher may take to suspend the program's processes, or to kill them."""

Source = Literal["stdout", "stderr"]
CLUSTERS = ("RAY_", "HPSEARCH_RAY", "HPSEARCH_WORKER")
"""The beginnings of variables with which a program would take itself for a part of the cluster, or
end before its watcher has ended all of it."""


class LineReader:
    """Reads a stream that comes in pieces. `rest`: what follows the last line end so far."""

    def __init__(self) -> None:
        self.rest = b""

    def lines(self, piece: bytes) -> list[bytes]:
        """The lines that end in the next piece, without their ends."""
        *lines, self.rest = (self.rest + piece).split(b"\n")
        return lines


class Program:
    """A program and all of its descendants. Raises ProgramFailed if it cannot be started.

    Attributes:
        code: Its exit code, or minus the number of the signal that ended it; None before its end.
        clear: Whether nothing is left of it.
    """

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.code: int | None = None
        self.clear = False
        self._is_closed = False
        self._refusal: str | None = None
        self._suspended: list[int] | None = None
        self._events = LineReader()
        self._file = starting.file_of(words[0], folder, environment.get("PATH"))
        self._path = environment.get("PATH")
        self._status, telling = os.pipe()
        command = [sys.executable, "-I", "-S", watcher.__file__, "program", str(telling), *words]
        try:
            self._watcher = subprocess.Popen(  # noqa: S603 - the command that the user states
                command,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(telling,),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(self._status)
            raise ProgramFailed(f"the command cannot be started: {error}") from error
        finally:
            os.close(telling)
        self._selector = selectors.DefaultSelector()
        self._open: set[int] = set()
        self._listen(self._status, None)
        assert self._watcher.stdout is not None
        assert self._watcher.stderr is not None
        self._listen(self._watcher.stdout.fileno(), "stdout")
        self._listen(self._watcher.stderr.fileno(), "stderr")

    def _listen(self, handle: int, source: Source | None) -> None:
        os.set_blocking(handle, False)
        self._selector.register(handle, selectors.EVENT_READ, source)
        self._open.add(handle)

    @property
    def fault(self) -> str | None:
        """Why its file cannot be started, if a reason is seen."""
        return None if self._file is None else starting.fault_of(self._file, self._path)

    @property
    def other_python(self) -> Path | None:
        """The Python that runs it, where it is not ours."""
        return None if self._file is None else starting.other_python(self._file, self._path)

    @property
    def over(self) -> bool:
        """Nothing is left of the program, and all that it has printed was read."""
        return self.clear and not self._open

    def read(self, timeout_s: float) -> list[tuple[Source, bytes]]:
        """The output since the last call; waits for the first of it, or for the program's end.
        Raises ProgramFailed if it could not be started."""
        pieces: list[tuple[Source, bytes]] = []
        for key, _ in self._selector.select(timeout_s):
            content = self._content(key.fd)
            if content and key.data is None:
                self._take_in(content)
            elif content:
                pieces.append((key.data, content))
        if self.clear and not pieces:
            # Some process that is not of the program still holds the output open.
            for handle in list(self._open):
                self._stop_listening(handle)
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            refusal = f"{refusal}: {self.fault}" if self.fault else refusal
            raise ProgramFailed(f"the command cannot be started: {refusal}")
        return pieces

    def _content(self, handle: int) -> bytes:
        try:
            content = os.read(handle, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not content:
            self._stop_listening(handle)
            if handle == self._status and not self.clear:  # somebody has killed the watcher
                self.clear = True
                if self.code is None:
                    self.code = -signal.SIGKILL
        return content

    def _stop_listening(self, handle: int) -> None:
        self._selector.unregister(handle)
        self._open.discard(handle)

    def _take_in(self, content: bytes) -> None:
        for line in self._events.lines(content):
            word, _, rest = line.decode(errors="replace").partition(" ")
            match word:
                case "refused":
                    self._refusal = rest
                case "suspended":
                    self._suspended = [int(number) for number in rest.split()]
                case "ended":
                    self.code = int(rest)
                case "clear":
                    self.clear = True

    def suspend(self) -> list[tuple[Source, bytes]]:
        """Suspend all of its processes, and return its output until then."""
        self._suspended = None
        self._ask(watcher.SUSPEND)
        pieces = []
        give_up = time.monotonic() + PATIENCE_S
        while self._suspended is None and not self.over and time.monotonic() < give_up:
            pieces += self.read(0.05)
        while more := self.read(0.0):
            pieces += more
        return pieces

    def resume(self) -> None:
        self._ask(watcher.RESUME)

    def terminate(self) -> None:
        """Send SIGTERM to its process group."""
        self._ask(watcher.TERMINATE)

    def kill(self) -> None:
        self._ask(watcher.KILL)

    def _ask(self, letter: bytes) -> None:
        assert self._watcher.stdin is not None
        with suppress(BrokenPipeError):  # it has ended
            os.write(self._watcher.stdin.fileno(), letter)

    def writes_in(self, folder: Path) -> list[Path]:
        """The files of a folder that the suspended processes have open for writing. Logs are
        left out: files that are opened to append, and TensorBoard's. So are pipes and removed
        files."""
        found: set[Path] = set()
        for process in self._suspended or ():
            with suppress(OSError):
                for path in open_for_writing(Path(f"/proc/{process}/fd"), appends=False):
                    if EVENTS in path.name:
                        continue
                    if path.is_relative_to(folder) and path.is_file():
                        found.add(path)
        return sorted(found)

    def close(self) -> bool:
        """Kill what is left; False while something cannot be killed. Repeating it does nothing."""
        if self._is_closed:
            return True
        self.kill()
        give_up = time.monotonic() + PATIENCE_S
        while not self.over and time.monotonic() < give_up:
            self.read(0.05)
        if not self.clear:
            return False
        self._is_closed = True
        self._selector.close()
        os.close(self._status)
        for stream in (self._watcher.stdin, self._watcher.stdout, self._watcher.stderr):
            assert stream is not None
            stream.close()
        self._watcher.wait()
        return True


def open_for_writing(handles: Path, *, appends: bool = True) -> Iterator[Path]:
    """The files that a process, by its folder of handles in /proc, has open for writing; without
    `appends`, not to append. Raises OSError if it ends meanwhile, or belongs to another user."""
    for handle in handles.iterdir():
        facts = (handles.with_name("fdinfo") / handle.name).read_text()
        _, _, after = facts.partition("flags:")
        flags = int(after.split()[0], 8)
        is_writable = flags & os.O_ACCMODE != os.O_RDONLY
        if is_writable and (appends or not flags & os.O_APPEND):
            yield handle.readlink()


def own_environment() -> dict[str, str]:
    """The environment of this process, without its cluster."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(CLUSTERS)}
    # Python would buffer its output to a pipe in large pieces.
    return {**own, "PYTHONUNBUFFERED": "1"}
