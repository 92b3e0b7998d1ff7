"""A study file from a command line: its numbers become parameters, and what counts its training the
budget."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from hpsearch.errors import UserError
from trials.contract import Unit
from trials.descriptions.command_line import BUDGET, FOLDER, GIVEN, RESUME, SEED

_COUNTS = {
    Unit.EPOCHS: ("epoch",),
    Unit.STEPS: ("step", "iter", "updates"),
    Unit.SECONDS: ("seconds", "max_time"),
}
"""What names what a program counts its training in."""
_FOLDERS = ("out", "output", "out_dir", "output_dir", "save_dir", "checkpoint_dir", "workdir")
_RESUMES = ("resume", "resume_from", "resume_from_checkpoint")
_FIXED = re.compile(
    r"worker|thread|port|gpu|device|node|nproc|proc|rank|print|log|verbos|every|interval|freq"
)
"""What names numbers that change nothing of the result, or that a machine decides."""
_SHARES = re.compile(r"dropout|drop_|smooth|warmup|ratio|prob|fraction|mix")
_NEAR_ONE = re.compile(r"momentum|beta|ema|gamma")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNED = re.compile(r"((?:--?|\+)?([A-Za-z][\w.-]*)=)(.*)", re.DOTALL)
_SAFE = re.compile(r"[\w@%+=:,./{}-]+")
_WHOLE = re.compile(r"\d{1,9}")

Text = str
"""YAML."""


@dataclass
class Found:
    """What a command line says of the study that searches it.

    Attributes:
        words: The command's words, with placeholders.
        space: The parameters by name, each as YAML.
        values: The values that the command line gives to the parameters.
        unit: What the budget counts.
        total: The budget; None if the command line has none.
        fixed: Numbers that are left as they are, by name.
    """

    words: list[str] = field(default_factory=list)
    space: dict[str, Text] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    unit: Unit = Unit.EPOCHS
    total: str | None = None
    fixed: list[str] = field(default_factory=list)

    def as_names(self) -> dict[str, str]:
        """What the starter of a command names, as YAML."""
        width = max(map(len, self.space), default=0)
        lines = [f"  {name + ':':<{width + 1}} {text}" for name, text in self.space.items()]
        space = "\n".join(lines)
        values = ", ".join(f"{name}: {_number(value)}" for name, value in self.values.items())
        return {
            "run": _quoted(" ".join(map(_as_word, self.words))),
            "space": space,
            "enqueue": f"enqueue: [{{{values}}}]   # what the command line had is tried first\n",
            "counted": self.unit.value,
            "total": self.total or "1",
        }


def found_in(line: str) -> Found:
    """What a command line says of the study that searches it.

    Raises:
        UserError: It cannot be split, or has no number to search.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UserError(f"--command cannot be split into words: {error}") from None
    found = Found()
    flag: str | None = None
    for word in words:
        escaped = word.replace("{", "{{").replace("}", "}}")
        assigned = _ASSIGNED.fullmatch(word)
        if assigned:
            before, name, value = assigned.groups()
            replaced = _replaced(found, _as_name(name), value)
            found.words.append(escaped if replaced is None else before + replaced)
            flag = None
            continue
        replaced = None if flag is None else _replaced(found, _as_name(flag), word)
        found.words.append(escaped if replaced is None else replaced)
        named = _FLAG.fullmatch(word)
        flag = named[1] if named and replaced is None else None
    if not found.space:
        what = "--command has no number after a flag that could be searched"
        raise UserError(what, 'for example: hpsearch init --command "python train.py --lr 0.1"')
    return found


def _replaced(found: Found, name: str, value: str) -> str | None:
    """What to write for the value of a flag; None if it stays."""
    if name == SEED:
        return f"{{{SEED}}}"
    if name in _FOLDERS:
        return f"{{{FOLDER}}}"
    if name in _RESUMES:
        return f"{{{RESUME}}}"
    number = _read(value)
    if number is None or name in found.space:
        return None
    unit = _counted_by(name)
    if unit is not None and found.total is None and number > 0:
        found.unit, found.total = unit, _number(number)
        return f"{{{BUDGET}}}"
    text = _range(name, number)
    if text is None or name in GIVEN:
        found.fixed.append(name)
        return None
    found.space[name] = text
    found.values[name] = number
    return f"{{{name}}}"


def _counted_by(name: str) -> Unit | None:
    """What a flag counts the training in, where that is its purpose."""
    is_total = re.match(r"(num|max|n|total|train)_|[a-z]+s?$", name)
    if _FIXED.search(name) or "warmup" in name or not is_total:
        return None
    for unit, parts in _COUNTS.items():
        if any(part in name for part in parts):
            return unit
    return None


def _range(name: str, value: float) -> Text | None:
    """A range around a value; None if it should stay."""
    if _FIXED.search(name) or value < 0 or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return _whole_range(name, value)
    if _SHARES.search(name) and value <= 0.5:
        return "{type: float, low: 0.0, high: 0.5}"
    if _NEAR_ONE.search(name) and 0.5 <= value < 0.999:
        return "{type: float, low: 0.5, high: 0.999}"
    if value == 0:
        return "{type: float, low: 0.0, high: 0.1}"
    return f"{{type: float, low: {_number(value / 10)}, high: {_number(value * 10)}, log: true}}"


def _whole_range(name: str, value: int) -> Text | None:
    if value == 0:
        return None
    if "batch" in name:
        choices = sorted({max(1, value // 2), value, 2 * value, 4 * value})
        return f"{{type: categorical, choices: {choices}}}"
    if value <= 8:
        return f"{{type: int, low: 1, high: {2 * value}}}"
    return f"{{type: int, low: {value // 4}, high: {value * 4}, log: true}}"


def _read(text: str) -> float | None:
    """The number that a word is; None for any other word."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _number(value: float) -> str:
    """A number as YAML reads it back: with a point before the exponent."""
    if isinstance(value, int):
        return str(value)
    text = repr(float(f"{value:.6g}"))
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def _as_name(flag: str) -> str:
    return re.sub(r"[-.]", "_", flag)


def _as_word(word: str) -> str:
    return word if _SAFE.fullmatch(word) else shlex.quote(word)


def _quoted(text: str) -> Text:
    try:
        if yaml.safe_load(text) == text:
            return text
    except yaml.YAMLError:
        pass  # YAML reads something else in it
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10_000).strip()


def lines(found: Found) -> Iterator[str]:
    """What to tell about a study file that was written from a command line."""
    if found.total is None:
        yield f"write {{{BUDGET}}} where the command is told how long to train, and set per_trial"
    if found.fixed:
        yield f"left as they are: {', '.join(found.fixed)}"
    yield 'the command must print a line such as {"resource": 1, "accuracy": 0.8} after each part;'
    yield "if it prints other lines, a pattern reads them: report"
