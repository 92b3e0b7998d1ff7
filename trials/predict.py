"""Models in use: what a final training wrote for images, tables or texts::

    from trials.predict import load

    load("models/digits/v1").predict(images)       # bytes, shape (n, height, width, channels)
    load("models/prices/v1").predict("new.csv")    # the columns it was trained on
    load("models/stars/v1").predict(["A good book"])    # texts, or pairs of texts

Other models of transformers need nothing of this: `transformers.pipeline` loads their folders.
"""

from __future__ import annotations

from pathlib import Path

from trials.tasks.images import classifier as images
from trials.tasks.images.classifier import ImageClassifier
from trials.tasks.tabular.table_model import TableModel
from trials.tasks.text import text_model as texts
from trials.tasks.text.text_model import TextModel

__all__ = ["ImageClassifier", "TableModel", "TextModel", "load"]


def load(folder: Path | str) -> ImageClassifier | TableModel | TextModel:
    """The model in a folder.

    Raises:
        FileNotFoundError: The folder holds none of these models.
    """
    if (Path(folder) / texts.DESCRIPTION).is_file():
        return TextModel(folder)
    if (Path(folder) / images.DESCRIPTION).is_file():
        return ImageClassifier(folder)
    return TableModel(folder)
