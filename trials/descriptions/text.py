"""The tasks on texts, which train models of transformers: their fields and settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from trials.descriptions.description import (
    GROUP,
    LOOP_METRICS,
    TABLE_FILES,
    Field,
    TaskDescription,
    by_name,
    files,
    split_seed,
)
from trials.descriptions.models import MODEL, TRUST
from trials.settings import Settings, setting


@dataclass(frozen=True)
class SequenceToSequenceSettings(Settings):
    """The loop's settings, and the lengths of targets; `max_length` is the length of a source."""

    max_target_length: int = setting(
        128, "Longest text to write, in tokens; longer ones are cut.", low=4, high=65536
    )
    scored_target_length: int | None = setting(
        None,
        "Tokens of a target that are scored; null is max_target_length, or its largest value if "
        "a study searches it.",
        low=4,
        high=65536,
        largest_of="max_target_length",
    )

    @property
    def target_lengths(self) -> tuple[int, int]:
        """The longest targets for training and for scoring, in tokens."""
        scored = self.scored_target_length
        return self.max_target_length, self.max_target_length if scored is None else scored


@dataclass(frozen=True)
class TextRegressionSettings(Settings):
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"label_smoothing"})


def _on_texts(
    kind: str,
    columns: tuple[Field, ...],
    metrics: frozenset[str],
    settings: type[Settings],
    train: str = TABLE_FILES,
    metrics_of: Callable[[Mapping[str, Any]], frozenset[str] | None] | None = None,
    per_token: tuple[frozenset[str], str] | None = None,
) -> TaskDescription:
    about = "a hub id, a local folder, or scratch: {layers: 2, width: 128}"
    model = Field("model", (str, dict), about, required=True, limits=MODEL)
    fields = by_name([*files(train), *columns, model, TRUST, split_seed("samples")])
    reported = LOOP_METRICS | metrics
    return TaskDescription(
        kind, fields, settings.table(), reported, metrics_of=metrics_of, per_token=per_token
    )


CLASS, LABELS, NUMBER = ("class", "labels", "number")
"""The targets of a text: its class, any of several labels, or a number."""
METRICS: Mapping[str, frozenset[str]] = {
    CLASS: LOOP_METRICS | {"loss", "accuracy", "macro_f1", "mcc"},
    LABELS: LOOP_METRICS | {"loss", "micro_f1", "macro_f1", "exact_match"},
    NUMBER: LOOP_METRICS | {"loss", "mse", "mae", "pearson", "spearman"},
}
"""The metrics of a report, by the target."""
BALANCED = "balanced"  # class weights by the frequency of each class


def _metrics_of(task: Mapping[str, Any]) -> frozenset[str]:
    return METRICS[LABELS if isinstance(task.get("label"), list) else CLASS]


_TEXT = Field(
    "text",
    (str, list),
    "the column with the texts, or a list of two columns with pairs of texts",
    required=True,
    limits={"items": {"type": "string"}, "minItems": 2, "maxItems": 2, "uniqueItems": True},
)

TEXT_CLASSIFICATION = _on_texts(
    "text_classification",
    (
        _TEXT,
        Field(
            "label",
            (str, list),
            "the column with the classes, or a list of columns of 0 and 1, one for each label",
            required=True,
            limits={"items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
        ),
        Field(
            "class_weights",
            (str,),
            "balanced weighs rare classes more in the loss; all weigh the same if missing",
            limits={"enum": [BALANCED]},
        ),
        GROUP,
    ),
    metrics=METRICS[CLASS] | METRICS[LABELS],
    settings=Settings,
    metrics_of=_metrics_of,
)

TEXT_REGRESSION = _on_texts(
    "text_regression",
    (_TEXT, Field("label", (str,), "the column with the numbers", required=True), GROUP),
    metrics=METRICS[NUMBER],
    settings=TextRegressionSettings,
)

TOKEN_CLASSIFICATION = _on_texts(
    "token_classification",
    (
        Field("tokens", (str,), "the column with the lists of words; tokens if missing"),
        Field("tags", (str,), "the column with the lists of tags; tags if missing"),
    ),
    metrics=frozenset({"loss", "accuracy", "precision", "recall", "f1"}),
    settings=Settings,
    train="a CoNLL (.conll, .txt), Parquet or JSONL file",
)

BLOCKS, DOCUMENTS = SAMPLES = ("blocks", "documents")
"""The samples of a language model: blocks of `max_length` tokens, or whole documents."""

OF_TOKENS = frozenset({"loss", "perplexity", "bits_per_byte"})
"""The metrics of models that predict the tokens of a text."""
PER_TOKEN = frozenset({"loss", "train_loss", "perplexity"}), "bits_per_byte"

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
    metrics=OF_TOKENS,
    settings=Settings,
    per_token=PER_TOKEN,
    train="a text (.txt), CSV, Parquet or JSONL file",
)

SEQUENCE_TO_SEQUENCE = _on_texts(
    "sequence_to_sequence",
    (
        Field("source", (str,), "the column with the texts to read; source if missing"),
        Field("target", (str,), "the column with the texts to write; target if missing"),
    ),
    metrics=OF_TOKENS,
    settings=SequenceToSequenceSettings,
    per_token=PER_TOKEN,
)
