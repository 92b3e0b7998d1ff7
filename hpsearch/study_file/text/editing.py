"""A study file with another budget and the same comments, order and layout.

The values are replaced in the text. The result is read again, and a text that does not have exactly
the wanted values is never returned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from hpsearch.errors import UserError
from hpsearch.study_file.text import yaml_source

ELSEWHERE = "start a new study with another budget"


def with_budget(text: str, changes: Mapping[str, float | str]) -> str:
    """The text of a study file with other limits under `budget`.

    Args:
        text: YAML that parses.
        changes: New values by key, such as ``{"trials": 80, "wall_clock": "4h"}``.

    Raises:
        UserError: The budget cannot be edited, for example because it is an alias.
    """
    edited = _edited(text, changes)
    wanted = yaml_source.read(text).value
    wanted["budget"] = {**wanted["budget"], **changes}
    found = yaml_source.read(edited)
    if found.problems or _as_text(found.value) != _as_text(wanted):
        keys = ", ".join(f"budget.{key}" for key in changes)
        reason = "it is written with an anchor, an alias or a key after '?'"
        raise UserError(f"the study file cannot be edited at {keys}: {reason}", ELSEWHERE)
    return edited


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _edited(text: str, changes: Mapping[str, float | str]) -> str:
    budget = _budget_of(text)
    written = {key.value: value for key, value in budget.value}
    edits: list[_Edit] = []
    added: dict[str, float | str] = {}
    for key, value in changes.items():
        if key in written:
            edits.append(_replacing(text, written[key], value))
        else:
            added[key] = value
    if added:
        edits.append(_adding(budget, added))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


_Edit = tuple[int, int, str]
"""The first character that is replaced, the one after the last, and the new text."""


def _budget_of(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    sections = root.value if isinstance(root, yaml.MappingNode) else []
    budgets = (value for key, value in sections if key.value == "budget")
    budget = next(budgets, None)
    if not isinstance(budget, yaml.MappingNode) or not budget.value:
        raise UserError("the study file's budget is not a mapping of its own", ELSEWHERE)
    return budget


def _replacing(text: str, node: yaml.Node, value: float | str) -> _Edit:
    start, end = node.start_mark.index, node.end_mark.index
    if start < end:
        return start, end, _written(value)
    # The key has no value: `trials:`, or just `trials` in braces.
    before = " " if text[:start].endswith(":") else ": "
    return start, end, before + _written(value)


def _adding(budget: yaml.MappingNode, added: Mapping[str, float | str]) -> _Edit:
    first = budget.value[0][0].start_mark
    between = ", " if budget.flow_style else "\n" + " " * first.column
    keys = [f"{key}: {_written(value)}{between}" for key, value in added.items()]
    return first.index, first.index, "".join(keys)


def _written(value: float | str) -> str:
    lines: list[str] = yaml.safe_dump(value, default_flow_style=True, width=10_000).splitlines()
    return lines[0]
