"""A study file with another budget, and everything else as its writer left it: comments, order and layout."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from hpsearch.errors import UserError


def with_budget(text: str, changes: Mapping[str, float | str]) -> str:
    """The text of a study file with other limits under `budget`.

    Args:
        text: YAML that parses.
        changes: New values by key, such as ``{"trials": 80, "wall_clock": "4h"}``.

    Raises:
        UserError: The budget stands where it cannot be edited, behind an anchor or a merge.
    """
    budget = _budget_of(text)
    written = {key.value: value for key, value in budget.value}
    edits = [_replacing(written[key], value) for key, value in changes.items() if key in written]
    added = {key: value for key, value in changes.items() if key not in written}
    if added:
        edits.append(_adding(budget, added))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


_Edit = tuple[int, int, str]
"""From and to which character, and what comes there."""


def _budget_of(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    sections = root.value if isinstance(root, yaml.MappingNode) else []
    budget = next((value for key, value in sections if key.value == "budget"), None)
    if not isinstance(budget, yaml.MappingNode) or not budget.value:
        raise UserError("the study file's budget is no mapping of its own", "start a new study with another budget")
    return budget


def _replacing(node: yaml.Node, value: float | str) -> _Edit:
    return node.start_mark.index, node.end_mark.index, str(value)


def _adding(budget: yaml.MappingNode, added: Mapping[str, float | str]) -> _Edit:
    """Before the first key, on the same line where the mapping is written in braces."""
    first = budget.value[0][0].start_mark
    between = ", " if budget.flow_style else "\n" + " " * first.column
    return first.index, first.index, "".join(f"{key}: {value}{between}" for key, value in added.items())
