"""A trained model of texts in use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.descriptions.text import CLASS, LABELS
from trials.tasks.workloads.network_files import described

if TYPE_CHECKING:
    from trials.tasks.text.task import TextData

DESCRIPTION = "text.json"
"""The file that says what a model reads and what its scores are."""

Answer = str | list[str] | float


def described_as(data: TextData, max_length: int) -> bytes:
    """The content of that file.

    Args:
        max_length: The longest text that it reads, in tokens.
    """
    content = {
        "target": data.target,
        "pairs": data.pairs,
        "max_length": max_length,
        "mean": data.mean,
        "deviation": data.deviation,
    }
    return (json.dumps(content, indent=1) + "\n").encode()


class TextModel:
    """A trained model of texts, or of pairs of texts.

    Args:
        folder: What a final training wrote. Code in it is not run.

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

    def predict(self, texts: Sequence[str] | Sequence[Sequence[str]]) -> list[Answer]:
        """The class of each text, its labels (those with a probability above a half), or its number
        in the unit of the data.

        Args:
            texts: Texts; or pairs of texts, where the model was trained on such.

        Raises:
            ValueError: They are something else.
        """
        inputs = [self._input(number, text) for number, text in enumerate(texts)]
        return [self._answer(found) for found in self._scores(inputs)] if inputs else []

    def _input(self, number: int, text: Any) -> Any:
        pairs = self._about["pairs"]
        if not pairs and isinstance(text, str):
            return text
        if pairs and not isinstance(text, str) and list(map(type, text)) == [str, str]:
            first, second = text
            return {"text": first, "text_pair": second}
        wanted = "pairs of texts" if pairs else "a list of texts"
        raise ValueError(f"the model reads {wanted}; number {number} is {text!r}")

    def _answer(self, found: list[dict[str, Any]]) -> Answer:
        target = self._about["target"]
        if target == CLASS:
            name: str = found[0]["label"]
            return name
        if target == LABELS:
            return sorted(score["label"] for score in found if score["score"] > 0.5)
        standardised: float = found[0]["score"]
        return standardised * float(self._about["deviation"]) + float(self._about["mean"])
