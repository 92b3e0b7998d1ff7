"""The text that stands for the study file of a study that was imported: what it searched and for
what, and where it is from.

It has the key `imported` and no task, so no driver can resume it by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from hpsearch.study_file.models import FloatParameter, IntParameter, Objective, Parameter

KEY = "imported"
_HEAD = "# Past runs that were imported. Use them as evidence of a new study: search.warm_start\n"


def text_of(
    name: str,
    origin: Mapping[str, Any],
    space: Mapping[str, Parameter],
    objectives: Sequence[Objective],
    budget: Mapping[str, Any],
) -> str:
    """The text that is stored for an imported study.

    Args:
        name: The study's name.
        origin: Where it is from: `from` (a kind of source), `source` and, if it is known, `task`
            (the kind of its task).
        space: What the past runs searched.
        objectives: What they were compared by.
        budget: `trials` and `per_trial`, as in a study file.
    """
    measured = [objective.model_dump() for objective in objectives]
    document = {
        "study": name,
        KEY: dict(origin),
        "space": {each: as_written(parameter) for each, parameter in space.items()},
        "objective": measured[0] if len(measured) == 1 else measured,
        "budget": dict(budget),
    }
    return _HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)


def origin_of(written: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Where a study was imported from; None for any other study.

    Args:
        written: Its study file, as it is written.
    """
    origin = written.get(KEY)
    return origin if isinstance(origin, dict) else None


def as_written(parameter: Parameter) -> dict[str, Any]:
    """A parameter as a study file has it, without what is the default."""
    written = parameter.model_dump(exclude_unset=True, exclude_defaults=True)
    written = {"type": parameter.type, **written}
    if isinstance(parameter, IntParameter | FloatParameter):
        written["low"], written["high"] = parameter.low, parameter.high
    else:
        written["choices"] = list(parameter.choices)
    if parameter.when:
        written["when"] = {name: list(values) for name, values in parameter.when.items()}
    return written
