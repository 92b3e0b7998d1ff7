"""A study file that was changed since its study began: what may change while the study goes on.

What steers how trials are run and read may. The space, its requirements and the limits on metrics
may, as a new version of the study, in which trials find their place (`brain.widening`). What values
rest on, such as the objective, the task or the length of a trial, may not: they would not compare.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch.brain.requests import LIMITS, limit_of
from hpsearch.brain.widening import has_stated
from hpsearch.errors import UserError
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.text import with_budget
from trials.descriptions import yaml_source
from trials.descriptions.command import COMMAND, line_of
from trials.foreign import code_of

FREE = ("resources", "track", "checkpoints")
FREE_IN_TASK = ("report", "reports", "resource", "ends_early", "resumes")
FREE_IN_BUDGET = (*LIMITS, "cost_per_gpu_hour", "worth")
OF_THE_SPACE = ("space", "requires", "constraints")
OPTIONS = {
    "enqueue": "use --enqueue",
    "study": "name the study that the file belongs to",
    "budget": "change it back, or start a new study with search: {warm_start: [NAME]}",
}
IS_NEW = "is new, and nothing says what trials without it count with"
IS_GONE = "is gone, and nothing says with which value it goes on"
HINTS = {
    IS_NEW: "say it there, such as was: 0.0",
    IS_GONE: "fix it under settings: trials with that value count, others stay on record",
}
SHOWN = 60  # letters of a value in a message


@dataclass(frozen=True)
class FileChanges:
    """The differences of a study file from the one on record, by key: such as ``task.ends_early:
    was not stated, now True``; and the text to go on with. What is `widened` makes a version."""

    text: str
    allowed: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def refuse(self, name: str) -> None:
        """Raise UserError if something differs that cannot change."""
        if not self.refused:
            return
        key = next(iter(self.refused))
        what = "; ".join(f"{each} {text}" for each, text in self.refused.items())
        usual = "change it back, or give a new study another name"
        hint = HINTS.get(self.refused[key]) or OPTIONS.get(key.partition(".")[0], usual)
        hint = hint.replace("[NAME]", f"[{name}]")
        raise UserError(f"study {name} cannot go on with this file: {what}", hint)


def changes_between(before: StudySpec, after: StudySpec) -> FileChanges:
    """The differences of the study file `after` from the one that a study has on record. Limits of
    the budget that were raised on the command line since then stay."""
    old, new = yaml_source.read(before.text).value, yaml_source.read(after.text).value
    allowed, widened = dict[str, str](), dict[str, str]()
    refused = _unplaced(before, after)
    kept = {}
    for file in (old, new):
        file.setdefault("settings", {})
    moved = before.space.keys() ^ after.space.keys()
    for key, (was, now) in _differing(old, new, "").items():
        section, _, rest = key.partition(".")
        name = {"objective": "objectives"}.get(section, section)
        part = rest.partition(".")[0]
        if section not in ("task", "budget") and getattr(before, name) == getattr(after, name):
            continue  # a default that is stated
        if section == "budget" and part in LIMITS and not _is_raised(before, after, part):
            kept[part] = was
            continue
        if section == "settings" and rest in moved:
            continue  # it is told of the space
        if key == "task.run" and _runs_alike(before, after, moved):
            continue
        found = f"was {_shown(was)}, now {_shown(now)}"
        if section in OF_THE_SPACE and key not in refused:
            widened[key] = found
            continue
        may_change = section in FREE or rest == "per_trial.time_limit"
        may_change |= section == "task" and part in FREE_IN_TASK
        may_change |= section == "budget" and part in FREE_IN_BUDGET
        if key not in refused:
            (allowed if may_change else refused)[key] = found
    return FileChanges(with_budget(after.text, kept), allowed, widened, refused)


def _unplaced(before: StudySpec, after: StudySpec) -> dict[str, str]:
    """Parameters that have come or gone, so that nothing says where trials have their place."""
    found = {}
    for name in after.space.keys() - before.space.keys():
        if not has_stated(after, name) and name not in before.settings:
            found[f"space.{name}"] = IS_NEW
    for name in before.space.keys() - after.space.keys():
        if name not in after.settings:
            found[f"space.{name}"] = IS_GONE
    return found


def _runs_alike(before: StudySpec, after: StudySpec, moved: Collection[str]) -> bool:
    """True if two commands are the same but for parameters that have come or gone."""
    if {before.task["kind"], after.task["kind"]} != {COMMAND.kind}:
        return False
    lines = [line_of(spec.task) for spec in (before, after)]
    names = {name: f"{{{name}}}" for line in lines for name in line.names}
    kept = {name: None if name in moved else text for name, text in names.items()}
    one, other = (line.filled(kept) for line in lines)
    return one == other


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
