"""A study file that was changed since its study began: what may change while the study goes on.

What steers how trials are run and read may. What the search rests on, such as the space or the
objective, may not: values before and after could not be compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.brain.requests import LIMITS, limit_of
from hpsearch.errors import UserError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.text import with_budget
from trials.descriptions import yaml_source
from trials.foreign import code_of

FREE = ("resources", "track", "checkpoints")
FREE_IN_TASK = ("report", "reports", "resource", "ends_early", "resumes")
FREE_IN_BUDGET = (*LIMITS, "cost_per_gpu_hour")
OPTIONS = {"enqueue": "use --enqueue", "study": "name the study that the file belongs to"}
SHOWN = 60  # letters of a value in a message


@dataclass(frozen=True)
class FileChanges:
    """The differences of a study file from the one on record, by key: such as ``task.ends_early:
    was not stated, now True``; and the text to go on with."""

    text: str
    allowed: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, name: str) -> None:
        """Raise UserError if something differs that cannot change."""
        if not self.refused:
            return
        key = next(iter(self.refused))
        what = "; ".join(f"{each} {text}" for each, text in self.refused.items())
        hint = OPTIONS.get(key, "change it back, or give a new study another name")
        raise UserError(f"study {name} cannot go on with this file: {what}", hint)


def changes_between(before: StudySpec, after: StudySpec) -> FileChanges:
    """The differences of the study file `after` from the one that a study has on record. Limits of
    the budget that were raised on the command line since then stay."""
    old, new = yaml_source.read(before.text).value, yaml_source.read(after.text).value
    allowed, refused = dict[str, str](), dict[str, str]()
    kept = {}
    for key, (was, now) in _differing(old, new, "").items():
        section, _, rest = key.partition(".")
        name = {"objective": "objectives"}.get(section, section)
        part = rest.partition(".")[0]
        if section not in ("task", "budget") and getattr(before, name) == getattr(after, name):
            continue  # a default that is stated
        if section == "budget" and part in LIMITS and not _is_raised(before, after, part):
            kept[part] = was
            continue
        found = f"was {_shown(was)}, now {_shown(now)}"
        may_change = section in FREE or rest == "per_trial.time_limit"
        may_change |= section == "task" and part in FREE_IN_TASK
        may_change |= section == "budget" and part in FREE_IN_BUDGET
        (allowed if may_change else refused)[key] = found
    return FileChanges(with_budget(after.text, kept), allowed, refused)


def _is_raised(before: StudySpec, after: StudySpec, limit: str) -> bool:
    was, now = limit_of(before, limit), limit_of(after, limit)
    return now is None or (was is not None and now > was)


def _differing(old: Any, new: Any, key: str) -> dict[str, tuple[Any, Any]]:
    if old == new:
        return {}
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {key: (old, new)}
    found: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys([*old, *new]):
        below = f"{key}.{name}" if key else str(name)
        found |= _differing(old.get(name), new.get(name), below)
    return found


def _shown(value: Any) -> str:
    return "not stated" if value is None else code_of(value, SHOWN)
