"""A trained model of texts in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trials.descriptions.text import CLASS, LABELS
from trials.tasks.workloads.network_files import described

DESCRIPTION = "text.json"
"""The file of a checkpoint with the form of a model's texts and scores."""

Prediction = str | list[str] | float


class TextModel:
    """A trained model of texts, or of pairs of texts.

    Args:
        folder: The model of a final training. Code in it is not run.

    Raises:
        FileNotFoundError: The folder holds no such model.
    """

    def __init__(self, folder: Path | str) -> None:
        import transformers

        self._about = described(folder, DESCRIPTION)
        transformers.logging.disable_progress_bar()
        self._scores = transformers.pipeline(
            "text-classification",
            str(folder),
            trust_remote_code=False,
            device="cpu",
            top_k=None,
            truncation=True,
            max_length=self._about["max_length"],
        )

    def predict(self, texts: Sequence[str] | Sequence[Sequence[str]]) -> list[Prediction]:
        """The class of each text, its labels (of a probability above a half), or its number in the
        unit of the data.

        Args:
            texts: Texts; or pairs of texts, for a model of pairs.

        Raises:
            ValueError: They are something else.
        """
        inputs = list(map(self._input, texts))
        return [self._prediction(found) for found in self._scores(inputs)] if inputs else []

    def _input(self, text: Any) -> Any:
        is_text = isinstance(text, str)
        if self._about["pairs"] and not is_text and len(text) == 2:
            return {"text": text[0], "text_pair": text[1]}
        if self._about["pairs"] or not is_text:
            wanted = "pairs of texts" if self._about["pairs"] else "a list of texts"
            raise ValueError(f"the model reads {wanted}, not {text!r}")
        return text

    def _prediction(self, found: list[dict[str, Any]]) -> Prediction:
        target = self._about["target"]
        if target == CLASS:
            name: str = found[0]["label"]
            return name
        if target == LABELS:
            return sorted(score["label"] for score in found if score["score"] > 0.5)
        standardised: float = found[0]["score"]
        return standardised * float(self._about["deviation"]) + float(self._about["mean"])
