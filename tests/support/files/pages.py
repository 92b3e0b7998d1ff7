"""The pages of the documentation as programs: what they show is written, run, and compared.

A page says in HTML comments, which its reader does not see, what is special about the code block
below them:

* ``<!-- file: NAME -->``: it shows a file, which is written.
* ``<!-- not run: WHY -->``: it is left alone, for a reason that `skipped` lists.
* ``<!-- exit: 2 -->``: its commands end with this exit code.
* ``<!-- varies -->``: what its commands print differs from time to time. Only the words of the
  first line are compared, which must all be shown.
"""

import io
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hpsearch.cli.main import main
from support.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"

BLOCK = re.compile(
    r"^(?P<marks>(?:[ ]*<!--[^\n]*?-->\n)*)"
    r"(?P<indent>[ ]*)```(?P<language>\w+)\n(?P<text>.*?)^[ ]*```",
    flags=re.DOTALL | re.MULTILINE,
)
SECTION = re.compile(r"^## (.*)$", flags=re.MULTILINE)
MARK = re.compile(r"<!-- ([\w ]+?)(?:: (.*?))? -->")
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
PATH = re.compile(r"(?:[\w+]+://)?/\S+")
STARTS_WORKERS = ("run", "resume", "train")
"""Commands that start processes of their own, and so run in one of their own."""
OF_FEW = frozenset(
    ["with", "the", "defaults,", "which", "no", "trial", "beats,", "trained", "once"]
)
"""Words that are told of a study of very few trials, as a test makes it of a page's."""
PROGRAM = "from hpsearch.cli.main import main; main()"


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Args:
        language: What is said after the fence.
        text: What is in it, without the indentation of the fence.
        marks: What the comments above it say, by their first words.
        section: The heading of the second level that it is below; "" above the first.
    """

    language: str
    text: str
    marks: Mapping[str, str]
    section: str


def read(name: str) -> str:
    """The text of a page of docs/, or of the README."""
    path = ROOT / "README.md" if name == "README" else DOCS / f"{name}.md"
    return path.read_text(encoding="utf-8")


def blocks(name: str) -> list[Block]:
    """All code blocks of a page, in its order."""
    found = []
    page = read(name)
    for match in BLOCK.finditer(page):
        lines = match["text"].splitlines(keepends=True)
        text = "".join(line.removeprefix(match["indent"]) for line in lines)
        marks = {word: said or "" for word, said in MARK.findall(match["marks"])}
        headings = SECTION.findall(page, 0, match.start())
        section = str(headings[-1]) if headings else ""
        found.append(Block(match["language"], text, marks, section))
    return found


def sections(name: str) -> list[str]:
    """The headings of the second level that have code blocks below them."""
    return list(dict.fromkeys(block.section for block in blocks(name)))


def texts(name: str, language: str) -> list[str]:
    """What the code blocks of one language have, in the page's order."""
    return [block.text for block in blocks(name) if block.language == language]


def skipped(name: str) -> list[str]:
    """Why blocks of a page are not run."""
    return [block.marks["not run"] for block in blocks(name) if "not run" in block.marks]


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a block, each with the lines that it is shown to print."""
    is_session = block.language == "console"
    joined = block.text.replace("\\\n", " ")
    lines = joined.splitlines()
    begins = [n for n, line in enumerate(lines) if not is_session or line.startswith("$ ")]
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        line = lines[begin].removeprefix("$ ") if is_session else lines[begin]
        if shlex.split(line, comments=True):
            yield line, lines[begin + 1 : end]


def shape(line: str) -> str:
    """A line without what differs from run to run: paths, numbers, units of time, and blanks."""
    numbered = NUMBER.sub("#", PATH.sub("PATH", line))
    return " ".join(re.sub(r"# (?:ms|s|min|h)\b", "# time", numbered).split())


def is_printed(shown: list[str], printed: list[str]) -> bool:
    """Whether lines are those that a page shows, where ``...`` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(is_printed(shown[1:], printed[n:]) for n in range(len(printed) + 1))
    if not printed or shape(shown[0]) != shape(printed[0]):
        return False
    return is_printed(shown[1:], printed[1:])


@dataclass
class Shell:
    """Runs what pages show, in a folder.

    Args:
        folder: Where it runs.
        environment: Variables beside those of this process.
        instead: Pieces of commands and files that are replaced, as a hub id by a local folder.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    """What the page's Python has defined so far."""

    def walk(self, name: str, section: str | None = None) -> None:
        """Run all of a page, or of one section, block after block."""
        for block in blocks(name):
            is_asked_for = section in (None, block.section)
            if is_asked_for and "not run" not in block.marks:
                self.run(block)

    def run(self, block: Block) -> None:
        """Write a file, run commands, Python or SQL; everything else is only shown."""
        if "file" in block.marks:
            path = self.folder / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.replaced(block.text), encoding="utf-8")
        elif block.language in ("sh", "console"):
            for line, shown in commands(block):
                printed = self.call(line, code=int(block.marks.get("exit", "0"))).splitlines()
                if "varies" in block.marks:
                    told, known = ({*shape(lines[0]).split()} for lines in (printed, shown))
                    assert told <= known | OF_FEW, printed[0]
                elif block.language == "console":
                    assert is_printed(shown, printed), f"{line} printed:\n" + "\n".join(printed)
        elif block.language == "sql":
            with closing(sqlite3.connect(self.folder / "hpsearch.db")) as connection:
                assert connection.execute(block.text).fetchall(), f"no rows: {block.text}"
        elif block.language == "python":
            with self.at_home():
                exec(compile(self.replaced(block.text), "a page", "exec"), self.names)

    def call(self, line: str, code: int = 0) -> str:
        """Run a command line, and return all that it printed, of both kinds."""
        line = self.replaced(line)
        words = shlex.split(line, comments=True)
        if (
            words[0] == "hpsearch"
            and words[1] not in STARTS_WORKERS
            and not ({">", "|"} & {*words})
        ):
            ended, printed = self._here(words[1:])
        else:
            ended, printed = self._beside(line)
        assert ended == code, f"{line} ended with {ended}:\n{printed}"
        assert "Traceback" not in printed, printed
        return printed

    def replaced(self, text: str) -> str:
        """A text with what is taken instead."""
        for shown, taken in self.instead.items():
            text = text.replace(shown, taken)
        return text

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """This process in the folder, with the variables."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            yield

    def _here(self, words: list[str]) -> tuple[int, str]:
        """In this process, which saves a program's start."""
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        talking = (redirect_stdout(printed), redirect_stderr(printed))
        with self.at_home(), talking[0], talking[1], pytest.raises(SystemExit) as ended:
            main(words)
        return int(ended.value.code or 0), printed.buffer.getvalue().decode()

    def _beside(self, line: str) -> tuple[int, str]:
        program = f"{shlex.quote(sys.executable)} -c {shlex.quote(PROGRAM)}"
        written = re.sub(r"^hpsearch\b", lambda _: program, line)
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            written,
            shell=True,
            cwd=self.folder,
            env={**os.environ, **self.environment, "PATH": programs},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.returncode, done.stdout
