"""A study file in the making, from what another program searches by, with remarks on what is
lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from hpsearch.errors import UserError
from hpsearch.study_file.reading import space_in

USUAL_TRIALS = 20
FORWARD = "cannot be carried over"
_SECTIONS = ("study", "task", "settings", "space", "objective", "budget", "search")
_INLINE = ("objective", "search")
"""Sections whose parts fit on a line."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A note to a person on a part of the study file: a key of it, perhaps with a parameter's name
    after it (`space.lr`), and the line of the source, if it is about one."""

    line: int | None
    section: str
    what: str

    def __str__(self) -> str:
        return self.what if self.line is None else f"line {self.line}: {self.what}"


@dataclass
class StudyDraft:
    """A study file in the making.

    Attributes:
        source: Its origin, such as `sweep.yaml, a file of W&B`.
        sections: The content of `task`, `settings` and the like, without `space`.
        space: The parameters by name, as a study file has them.
    """

    source: str
    study: str = "imported"
    sections: dict[str, Any] = field(default_factory=dict)
    space: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)

    def remark(self, line: int | None, section: str, what: str) -> None:
        """Add a remark: what cannot be carried over or was assumed, why, and what to do."""
        found = Remark(line, section, what)
        if found not in self.remarks:
            self.remarks.append(found)

    def add(self, name: str, parameter: Mapping[str, Any], line: int | None) -> bool:
        """Add a parameter, unless a study file cannot have it. Returns whether it was added."""
        _, problems = space_in({name: dict(parameter)})
        if problems:
            why = "; ".join(problem.what for problem in problems)
            self.remark(line, "space", f"{name} {FORWARD}: {why}")
            return False
        self.space[name] = dict(parameter)
        return True

    def text(self) -> str:
        """The study file, with the remarks as comments. Raises UserError if it has nothing to
        search."""
        draws_itself = self.sections.get("task", {}).get("library") == "optuna"
        if not self.space and not draws_itself:
            remarks = [f"  {remark}" for remark in self.remarks]
            what = f"there is nothing that a study could search in {self.source}"
            raise UserError("\n".join([what, *remarks]))
        lines = [f"# Made from {self.source}. Check it with: hpsearch check"]
        for section in _SECTIONS:
            lines += self._section(section)
        return "\n".join(lines) + "\n"

    def _section(self, section: str) -> list[str]:
        value = {**self.sections, "study": self.study, "space": self.space}.get(section)
        lines = self._comments(section)
        if value in (None, {}):
            return lines
        if not isinstance(value, dict) or section in _INLINE:
            return [*lines, f"{section}: {flow(value)}"]
        lines.append(f"{section}:")
        for key, part in value.items():
            lines += ["  " + line for line in self._comments(f"{section}.{key}")]
            lines.append(f"  {flow(key)}: {flow(part)}")
        return lines

    def _comments(self, section: str) -> list[str]:
        return [f"# {remark}" for remark in self.remarks if remark.section == section]


def flow(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return text.strip().removesuffix("...").strip().replace("\n", " ")


def study_name(text: str) -> str:
    """The nearest name that a study may have."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    return name[:100] or "imported"
