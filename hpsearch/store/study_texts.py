"""The text of a study file in a database."""

import copy
from functools import lru_cache
from typing import Any

import yaml
from pydantic import ValidationError

from hpsearch.errors import Damaged
from hpsearch.study_file.models import StudyBudget

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's in C, several times as fast, where it was built with that."""


def content_of(spec: str) -> dict[str, Any]:
    """The data of a study file; empty for a study that was not made from one."""
    return copy.deepcopy(_content_of(spec))


@lru_cache(maxsize=1024)
def _content_of(spec: str) -> dict[str, Any]:
    try:
        content = _Loader(spec).get_single_data()
    except yaml.YAMLError:
        raise Damaged("studies.spec holds a study file that is not YAML") from None
    return content if isinstance(content, dict) else {}


def metrics_in(spec: str) -> list[str]:
    """The metrics of a study file's objectives, in order; empty without a study file."""
    objective = _content_of(spec).get("objective")
    stated = objective if isinstance(objective, list) else [objective]
    return [str(each["metric"]) for each in stated if isinstance(each, dict) and "metric" in each]


@lru_cache(maxsize=256)
def budget_in(spec: str) -> StudyBudget | None:
    """The budget of a study file; None without a valid one."""
    try:
        return StudyBudget.model_validate(_content_of(spec).get("budget"))
    except ValidationError:
        return None
