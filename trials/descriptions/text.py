"""The tasks on texts, which train models of transformers: their fields and settings."""

from __future__ import annotations

from dataclasses import dataclass

from trials.descriptions.description import (
    LOOP_METRICS,
    TABLE_FILES,
    Field,
    TaskDescription,
    files,
    split_seed,
)
from trials.descriptions.models import MODEL, TRUST
from trials.settings import Settings, setting


@dataclass(frozen=True)
class PackingSettings(Settings):
    """The loop's settings, and whether short samples share a row; for tasks that score each token
    by itself."""

    packing: bool = setting(
        bool,
        False,
        "Lay short samples end to end in rows of max_length: "
        "less padding, same samples, same losses.",
    )


@dataclass(frozen=True)
class SequenceToSequenceSettings(Settings):
    """The loop's settings, and how long a target may be; `max_length` is that of a source."""

    max_target_length: int = setting(
        int, 128, "Longest text to write, in tokens; longer ones are cut.", low=4, high=65536
    )
    scored_target_length: int | None = setting(
        int,
        None,
        "Tokens of a target that are scored; null is max_target_length, or its largest value if "
        "a study searches it.",
        low=4,
        high=65536,
        nullable=True,
        largest_of="max_target_length",
    )

    @property
    def target_lengths(self) -> tuple[int, int]:
        """The longest target that is trained, and that is scored, in tokens."""
        scored = self.scored_target_length
        return self.max_target_length, self.max_target_length if scored is None else scored


def _on_texts(
    kind: str,
    columns: tuple[Field, ...],
    metrics: frozenset[str],
    settings: type[Settings],
    train: str = TABLE_FILES,
) -> TaskDescription:
    """The description of a task on texts.

    Args:
        kind: Its name.
        columns: The fields of its own: those that name columns.
        metrics: What it measures on the validation data.
        settings: Its settings.
        train: Which files its data may be in, in words.
    """
    model = Field(
        "model",
        (str, dict),
        "a hub id, a local folder, or scratch: {layers: 2, width: 128}",
        required=True,
        limits=MODEL,
    )
    fields = (*files(train), *columns, model, TRUST, split_seed("samples"))
    named = {field.name: field for field in fields}
    return TaskDescription(kind, named, settings.table(), LOOP_METRICS | metrics)


TEXT_CLASSIFICATION = _on_texts(
    "text_classification",
    (
        Field("text", (str,), "the column with the texts", required=True),
        Field("label", (str,), "the column with the classes", required=True),
    ),
    metrics=frozenset({"loss", "accuracy", "macro_f1", "mcc"}),
    settings=Settings,
)

TOKEN_CLASSIFICATION = _on_texts(
    "token_classification",
    (
        Field("tokens", (str,), "the column with the lists of words; tokens if missing"),
        Field("tags", (str,), "the column with the lists of tags; tags if missing"),
    ),
    metrics=frozenset({"loss", "accuracy", "precision", "recall", "f1"}),
    settings=PackingSettings,
    train="a CoNLL (.conll, .txt), Parquet or JSONL file",
)

BLOCKS, DOCUMENTS = SAMPLES = ("blocks", "documents")
"""What a sample of a language model is: a block of `max_length` tokens, of several documents where
it takes them, or a document."""

LANGUAGE_MODELING = _on_texts(
    "language_modeling",
    (
        Field("text", (str,), "the column with the texts; text if missing"),
        Field(
            "samples",
            (str,),
            "blocks (documents joined and cut) or documents (each by itself); blocks if missing",
            limits={"enum": SAMPLES},
        ),
    ),
    metrics=frozenset({"loss", "perplexity"}),
    settings=PackingSettings,
    train="a text (.txt), CSV, Parquet or JSONL file",
)

SEQUENCE_TO_SEQUENCE = _on_texts(
    "sequence_to_sequence",
    (
        Field("source", (str,), "the column with the texts to read; source if missing"),
        Field("target", (str,), "the column with the texts to write; target if missing"),
    ),
    metrics=frozenset({"loss", "perplexity"}),
    settings=SequenceToSequenceSettings,
)
