"""A study file being made from another program's, with remarks on what cannot be carried over."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import parse, space_in
from hpsearch.study_file.text.yaml_source import read as read_yaml
from trials.descriptions.command_line import GIVEN

USUAL_TRIALS = 20
FORWARD = "cannot be carried over"
_WIDTH = 100
_SECTIONS = ("study", "task", "settings", "space", "objective", "budget", "search", "resources")
_INLINE = ("objective", "search", "resources")
"""Sections whose parts fit on a line."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person should know about a part of the study file."""

    line: int | None
    """Of the file that it was made from; None for no line of it."""
    section: str
    """A key of the study file, with a parameter's name after it where it is about one:
    `space.lr`."""
    what: str

    def __str__(self) -> str:
        return self.what if self.line is None else f"line {self.line}: {self.what}"


@dataclass
class StudyDraft:
    """A study file being made.

    Attributes:
        program: Whose file it is made from, such as `W&B`.
        study: The study's name.
        sections: What stands under `task`, `settings` and the like; `space` is apart.
        space: The parameters by name, as a study file has them.
        remarks: In the order of the source.
    """

    program: str
    study: str = "imported"
    sections: dict[str, Any] = field(default_factory=dict)
    space: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def remark(self, line: int | None, section: str, what: str) -> None:
        """Add one: what cannot be carried over or was assumed, why, and what to do."""
        found = Remark(line, section, what)
        if found not in self.remarks:
            self.remarks.append(found)

    def add(self, name: str, parameter: Mapping[str, Any], line: int | None) -> bool:
        """Add a parameter, unless a study file cannot have it. Returns whether it was added."""
        _, problems = space_in({name: dict(parameter)})
        if problems:
            told = "; ".join(problem.what for problem in problems)
            self.remark(line, "space", f"{name} {FORWARD}: {told}")
            return False
        self.space[name] = dict(parameter)
        return True

    def text(self, name: str) -> str:
        """The study file.

        Args:
            name: The file that it was made from.

        Raises:
            UserError: Nothing in it can be searched.
        """
        may_be_empty = self.sections.get("task", {}).get("library") == "optuna"
        if not self.space and not may_be_empty:
            told = [f"  {name}: {remark}" for remark in self.remarks]
            what = f"{name} has nothing that a study could search"
            raise UserError("\n".join([what, *told]))
        lines = [f"# Made from {name}, a file of {self.program}. Check it with: hpsearch check"]
        for section in _SECTIONS:
            lines += self._section(section)
        return "\n".join(lines) + "\n"

    def _section(self, section: str) -> list[str]:
        value = {**self.sections, "study": self.study, "space": self.space}.get(section)
        lines = self._comments(section)
        if value in (None, {}):
            return lines
        if section == "space":
            lines.append("space:")
            for name, parameter in self.space.items():
                lines += ["  " + line for line in self._comments(f"space.{name}")]
                lines.append(f"  {_flow(name)}: {_flow(parameter)}")
        elif isinstance(value, dict) and section not in _INLINE:
            lines.append(f"{section}:")
            lines += [f"  {_flow(key)}: {_flow(part)}" for key, part in value.items()]
        else:
            lines.append(f"{section}: {_flow(value)}")
        return lines

    def _comments(self, section: str) -> list[str]:
        return [f"# {remark}" for remark in self.remarks if remark.section == section]


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    line = text.strip().removesuffix("...").strip()
    return line.replace("\n", " ")


def problems_in(text: str) -> list[str]:
    """What a study file that was made would be refused for, as far as the text alone tells."""
    try:
        parse(text, base=Path())
    except SpecError as error:
        return error.problems
    return []


def study_name(text: str) -> str:
    """The nearest name that a study may have."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return name[:100] or "imported"


def with_placeholder(before: str, name: str) -> str:
    """A word of a command that ends in a placeholder, in quotes where a shell would need them."""
    word = f"{before}{{{name}}}"
    return word if shlex.quote(before + name) == before + name else shlex.quote(word)


def as_word(text: str) -> str:
    """A word of a command as its own: without placeholders, in quotes where a shell needs them."""
    return shlex.quote(text.replace("{", "{{").replace("}", "}}"))


def is_placeholder(name: str) -> bool:
    """Whether a command can have a placeholder of this name."""
    return name not in GIVEN and not set(name) & set("{}[]:!")


Lines = Mapping[str, int]
"""By dotted place, the line in a YAML file."""


def yaml_document(text: str, name: str) -> tuple[dict[str, Any], Lines]:
    """The mapping that a YAML text is, with its lines.

    Raises:
        SpecError: It is not YAML, or not a mapping; says where.
    """
    source = read_yaml(text)
    if source.problems:
        raise SpecError(
            [f"{name}:{source.line_of(each.where)}: {each.what}" for each in source.problems]
        )
    if not isinstance(source.value, dict):
        raise SpecError([f"{name}: must be a mapping of keys to values"])
    return source.value, source.lines
