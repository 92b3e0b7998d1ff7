"""The data of a sequence to sequence task: pairs of a text to read and a text to write for it.

The special tokens of both, such as the end of the text, are those the tokenizer puts there; every token of a target is
trained and scored, its end too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trials.batching import Sequences
from trials.contract import Problem, TaskError
from trials.tasks import sequence_data, tables, text_tokenizer
from trials.tasks.pretrained import Pretrained
from trials.tasks.sequence_data import SequenceData, Split, data_of, demand, read
from trials.tasks.sequence_task import SequenceSpec
from trials.tasks.text_classification import Scratch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Pair:
    """A text, and what to write for it."""

    source: str
    target: str


def prepare(spec: SequenceSpec, model: Pretrained | Scratch, max_length: int, max_target_length: int) -> SequenceData:
    """Read, check, split and tokenise.

    Args:
        spec: The task.
        model: Whose tokenizer is used.
        max_length: The longest source, in tokens.
        max_target_length: The longest target, in tokens.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = read(spec, lambda path, where: _pairs(spec, path, where))
    demand(problems)
    texts = [text for pair in train for text in (pair.source, pair.target)]
    tokenizer = text_tokenizer.load(model, texts, max_length, text_tokenizer.ended_byte_pairs, max_target_length)
    splits = [_tokenise(tokenizer, pairs, max_length, max_target_length) for pairs in (train, validation)]
    return data_of(tokenizer, splits)


def problems_with(spec: SequenceSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems too."""
    return sequence_data.problems_with(spec, lambda path, where: _pairs(spec, path, where))


def on_test(
    spec: SequenceSpec, model: Pretrained | Scratch, data: SequenceData, max_length: int, max_target_length: int
) -> SequenceData:
    """The data with the pairs of the test file, which has no problems, in place of the validation pairs."""
    assert spec.test is not None
    pairs, _ = _pairs(spec, spec.test, "task.test")
    tokenizer = text_tokenizer.again(model, data.tokenizer_files)
    return replace(data, validation=_tokenise(tokenizer, pairs or [], max_length, max_target_length))


def _pairs(spec: SequenceSpec, path: Path, where: str) -> tuple[list[Pair] | None, list[Problem]]:
    """The pairs in a file, or None where it has none to give; and its problems."""
    try:
        table = tables.read(path, where)
    except TaskError as error:
        return None, error.problems
    columns = {f"task.{field}": column for field, column in spec.columns.items()}
    if missing := [p for key, c in columns.items() if (p := tables.missing_column(table, c, key, path))]:
        return None, missing
    if len(table) == 0:
        return None, [Problem(where, f"{path} has no rows; name a file with data")]
    texts = [tables.texts_in(table, column) for column in columns.values()]
    problems = []
    for (key, column), values in zip(columns.items(), texts, strict=True):
        if empty := [row for row, value in enumerate(values, start=1) if value is None]:
            problems.append(Problem(key, tables.missing_values(empty, column, path)))
    return [Pair(str(source), str(target)) for source, target in zip(*texts, strict=True)], problems


def _tokenise(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_length: int, max_target_length: int
) -> Split:
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    read = tokenizer(sources, truncation=True, max_length=max_length, return_attention_mask=False)
    # Some tokenizers write another language than they read, and must be told which text is which.
    written = tokenizer(text_target=targets, truncation=True, max_length=max_target_length, return_attention_mask=False)
    return Split(Sequences.of(read["input_ids"]), Sequences.of(written["input_ids"]))
