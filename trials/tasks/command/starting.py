"""The file that a command starts: why the system does not start it, and the Python that runs it."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

_HEAD_BYTES = 4096
_ELF, _WINDOWS, _MARK = b"\x7fELF", b"MZ", b"\xef\xbb\xbf"
_APPLE = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_MACHINE = slice(18, 20)  # the bytes of an ELF file that name its processor
_PYTHON = re.compile(r"python[0-9.]*$")


def file_of(program: str, folder: Path, path: str | None = None) -> Path | None:
    """The file that a program's name stands for, by a PATH; None if there is none."""
    if "/" in program:
        return folder / program
    found = shutil.which(program, path=path)
    return None if found is None else Path(found)


def fault_of(file: Path, path: str | None = None) -> str | None:
    """Why a file cannot be started, with what to do; None if no reason is seen."""
    if not file.exists():
        return None
    if file.is_dir():
        return f"{file.name} is a folder; name a program in it"
    if not os.access(file, os.X_OK):
        return f"{file.name} is not executable; make it so (chmod +x), or name what runs it"
    return certain_fault_of(file, path) or _fault_of_format(file)


def other_python(file: Path, path: str | None = None) -> Path | None:
    """The Python that a program is, or that its first line names, where it is not ours."""
    words = _first_line(_head(file)).split()
    if words:
        is_env = Path(words[0]).name == "env"
        named = next((word for word in words[is_env:] if _PYTHON.match(Path(word).name)), "")
        found = file_of(named, Path("/"), path)
        if found is None:
            return None
        file = found
    if not _PYTHON.match(file.name) or file.absolute().parent == Path(sys.executable).parent:
        return None
    return file.absolute()


def certain_fault_of(file: Path, path: str | None = None) -> str | None:
    """As `fault_of`, of what no system starts: others may know more formats than this one."""
    head = _head(file)
    if head.startswith(_MARK + b"#!"):
        return f"{file.name} begins with a byte order mark, before its #!: save it without one"
    line = _first_line(head)
    if line.endswith("\r"):
        what = f"the lines of {file.name} end as on Windows, with carriage returns, so its first"
        return f"{what} line names no program: sed -i 's/\\r$//' {file.name}"
    words = line.split()
    if not words:
        return None
    interpreter = Path(words[0])
    if not interpreter.is_file():
        what = f"the first line of {file.name} names {interpreter}, which is not there"
        return f"{what}: write one that is, or name what runs it"
    if not os.access(interpreter, os.X_OK):
        return f"the first line of {file.name} names {interpreter}, which is not executable"
    named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if interpreter.name == "env" and named and shutil.which(named[0], path=path) is None:
        what = f"the first line of {file.name} asks for {named[0]}, which is not on the PATH"
        return f"{what}: write one that is, or name what runs it"
    return None


def _fault_of_format(file: Path) -> str | None:
    head, own = _head(file), _head(Path(sys.executable))
    if not head:
        return f"{file.name} is empty"
    if head.startswith(_ELF) and own.startswith(_ELF) and head[_MACHINE] != own[_MACHINE]:
        return f"{file.name} is a program for another processor than {platform.machine()}"
    if head.startswith((_WINDOWS, *_APPLE)) and not own.startswith(head[:2]):
        return f"{file.name} is a program of another operating system"
    if head.startswith(_ELF):
        return f"{file.name} needs a loader or an interpreter that is not there: try ldd"
    if head.startswith(b"#!"):
        return None
    what = f"{file.name} has no first line that names its interpreter"
    return f"{what}; write #!/usr/bin/env python or another, or name what runs it"


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_HEAD_BYTES)
    except OSError:
        return b""


def _first_line(head: bytes) -> str:
    if not head.startswith(b"#!"):
        return ""
    return os.fsdecode(head[2:].partition(b"\n")[0]).strip(" \t")
