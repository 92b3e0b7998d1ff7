"""A study file in the making, from what another program searches by."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from hpsearch.errors import UserError
from hpsearch.study_file.reading import space_in

USUAL_TRIALS = 20
BLOCKS = ("task", "settings", "space", "budget")  # sections with a line for each part


@dataclass
class StudyDraft:
    """A study file in the making."""

    source: str  # its origin, such as `sweep.yaml, a file of W&B`
    study: str
    sections: dict[str, Any] = field(default_factory=dict)
    """The content of `task`, `space` and the like, in their order."""
    space: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The parameters by name, as a study file has them."""
    remarks: list[str] = field(default_factory=list)  # notes to a person on what is lost or assumed

    def __post_init__(self) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.study).strip("-.")
        self.study = name[:100] or "imported"

    def add(self, name: str, parameter: Mapping[str, Any]) -> None:
        _, problems = space_in({name: dict(parameter)})
        if problems:
            why = "; ".join(problem.what for problem in problems)
            self.remarks.append(f"{name} cannot be carried over: {why}")
            return
        self.space[name] = dict(parameter)

    def text(self) -> str:
        """The study file, with remarks as comments. Raises UserError if nothing is searched."""
        draws_itself = self.sections["task"].get("library") == "optuna"
        if not self.space and not draws_itself:
            what = f"there is nothing that a study could search in {self.source}"
            raise UserError("\n  ".join([what, *self.remarks]))
        lines = [f"# Made from {self.source}. Check it with: hpsearch check"]
        lines += [f"# {remark}" for remark in self.remarks]
        for name, value in {"study": self.study, **self.sections}.items():
            if name in BLOCKS and value:
                lines += [f"{name}:", *(f"  {flow(key)}: {flow(value[key])}" for key in value)]
            elif isinstance(value, list) and value:
                lines += [f"{name}:", *(f"  - {flow(part)}" for part in value)]
            elif value or value == 0:
                lines.append(f"{name}: {flow(value)}")
        return "\n".join(lines) + "\n"


def flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return text.strip().removesuffix("...").strip().replace("\n", " ")
