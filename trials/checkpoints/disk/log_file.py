"""A log of bounded size, which survives the process that writes it.

What is written goes to the file at once and is added to its end, so that several processes can
write one log, and nothing of it is lost with any of them. A log that has become too large is cut
in place: processes that have it open go on with what is left of it.
"""

import os
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path

MOST_BYTES = 4 << 20  # the size at which a log is put aside, as the only earlier part that is kept
EARLIER = ".earlier"  # ends the name of the part that was put aside
OURS = "[hpsearch] "  # begins the lines of this program's own

_cutting = threading.Lock()


class LogFile:
    """A log that is written to its end. `path` is made where it is missing, with its folder. Raises
    OSError if it cannot be made or opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    @property
    def descriptor(self) -> int:
        return self._file

    @property
    def size(self) -> int:
        """The bytes of the log, without the part that was put aside."""
        return os.fstat(self._file).st_size

    def write(self, piece: bytes) -> None:
        while piece:
            written = os.write(self._file, piece)
            piece = piece[written:]

    def note(self, text: str) -> None:
        """Add a line of this program's own, with the time. A log that cannot be written must not
        end a training, so there is no error."""
        line = f"{OURS}{now()} {text}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):
            self.write(line if self._ends_a_line() else b"\n" + line)

    def _ends_a_line(self) -> bool:
        size = self.size
        return size == 0 or os.pread(self._file, 1, size - 1) == b"\n"

    def keep_small(self) -> None:
        with _cutting:
            if self.size > MOST_BYTES:
                self._put_aside()

    def _put_aside(self) -> None:
        """Copy the end of the log, and begin anew in the same file. The file is not renamed,
        because other processes would continue to write in the renamed one. What they print between
        the copy and the new beginning is lost."""
        earlier = Path(f"{self.path}{EARLIER}")
        draft = Path(f"{earlier}.new")
        begin = max(self.size - MOST_BYTES, 0)
        draft.write_bytes(os.pread(self._file, MOST_BYTES, begin))
        draft.replace(earlier)
        os.ftruncate(self._file, 0)
        self.note(f"goes on; what was before is in {earlier.name}")

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def now() -> str:
    """The time in this machine's time zone, as logs write it."""
    return datetime.now().astimezone().isoformat(timespec="seconds")
