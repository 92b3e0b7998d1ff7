"""Texts and pairs of texts: a model of transformers learns their class, their labels or a
number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.contract import Problem, TaskError
from trials.descriptions.text import (
    BALANCED,
    TEXT_CLASSIFICATION,
    TEXT_REGRESSION,
    TextRegressionSettings,
)
from trials.settings import Settings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.text.data import TextDataSet

if TYPE_CHECKING:
    from torch import nn

    from trials.final.export import Portable


class TextClassification(TextTask):
    """The task whose texts have a class each, or any of several labels."""

    DESCRIPTION = TEXT_CLASSIFICATION
    SETTINGS = Settings
    DATA = TextDataSet
    FIELDS: ClassVar = {"text": "text", "label": "label"}
    WORKLOAD = "trials.tasks.text.model:TextWorkload"
    OPTIONS: ClassVar[tuple[str, ...]] = ("separator", "class_weights")

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        problems = [*_wrong_columns(task), *_wrong_separator(task), *_wrong_weights(task)]
        if problems:
            raise TaskError(problems)
        super().__init__(task, base)

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `input_ids`, `attention_mask` and, of pairs, `token_type_ids` where the model reads
        them, to the logits of classes or labels, or a standardised number."""
        from trials.final.export import Portable
        from trials.tasks.huggingface.model_files import ClassifierScores

        return Portable(ClassifierScores(folder, type(model)), free=(0, 1))


class TextRegression(TextClassification):
    """The task whose texts have a number each."""

    DESCRIPTION = TEXT_REGRESSION
    SETTINGS = TextRegressionSettings
    OPTIONS = ()


def _wrong_columns(task: Mapping[str, Any]) -> Iterator[Problem]:
    text, label = task["text"], task["label"]
    if isinstance(text, list) and len(text) != 2:
        what = f"must be one column, or two for pairs of texts, not {len(text)}"
        yield Problem("task.text", f"{what}; join the texts of more than two beforehand")
    if label == []:
        yield Problem("task.label", "names no column; name one, or those of the labels")
    for key, named in (("text", text), ("label", label)):
        columns = named if isinstance(named, list) else []
        for place, column in enumerate(columns):
            where = f"task.{key}[{place}]"
            if not isinstance(column, str):
                yield Problem(where, f"must be the name of a column, not {column!r}")
            elif column in columns[:place]:
                yield Problem(where, f"names {column!r} again; name each column once")


def _wrong_separator(task: Mapping[str, Any]) -> Iterator[Problem]:
    if "separator" not in task:
        return
    if not task["separator"].strip():
        what = 'must have a character that is not white space, such as ";"'
        yield Problem("task.separator", what)
    if isinstance(task["label"], list):
        what = "joins the labels in one column, and label names a column for each"
        yield Problem("task.separator", f"{what}; remove it, or name the one column")


def _wrong_weights(task: Mapping[str, Any]) -> Iterator[Problem]:
    weights = task.get("class_weights", BALANCED)
    if isinstance(weights, str):
        if weights != BALANCED:
            what = f"must be {BALANCED}, or a mapping of classes to weights, not {weights!r}"
            yield Problem("task.class_weights", what)
        return
    for name, weight in weights.items():
        if not _is_weight(weight):
            what = f"must be a number above 0, not {weight!r}"
            yield Problem(f"task.class_weights.{name}", what)


def _is_weight(weight: Any) -> bool:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return False
    return math.isfinite(weight) and weight > 0
