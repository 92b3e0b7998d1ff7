"""A study file with another budget."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from trials.descriptions import yaml_source


def with_budget(text: str, changes: Mapping[str, float | str]) -> str:
    """The text of a study file with other limits under `budget`; comments are not kept.

    Args:
        text: A study file without mistakes.
        changes: New values by key, such as ``{"trials": 80, "wall_clock": "4h"}``.
    """
    if not changes:
        return text
    study = yaml_source.read(text).value
    study["budget"] = {**study["budget"], **changes}
    edited: str = yaml.safe_dump(study, sort_keys=False, allow_unicode=True, width=100)
    return edited
