"""Models in use: what a final training wrote for images, tables or texts::

    from trials.predict import load

    load("models/digits/v1").predict(images)       # bytes, shape (n, height, width, channels)
    load("models/prices/v1").predict("new.csv")    # the columns it was trained on
    stars = load("models/stars/v1", device="cuda")
    stars.predict(["A good book"], batch_size=256)    # texts, or pairs of texts
    stars.probabilities(["A good book"])    # shape (1, classes), in the order of stars.labels

Other models of transformers need nothing of this: `transformers.pipeline` loads their folders.
"""

from pathlib import Path

from trials.descriptions.models import CONFIG
from trials.tasks.images import image_model as images
from trials.tasks.images.image_model import ImageClassifier
from trials.tasks.tabular import table_run as tables
from trials.tasks.tabular.table_model import TableModel
from trials.tasks.text import text_task as texts
from trials.tasks.workloads.in_use import ModelInUse

__all__ = ["ImageClassifier", "ModelInUse", "TableModel", "load"]


def load(folder: Path | str, device: str = "cpu") -> ModelInUse:
    """The model in a folder, on a torch device such as cuda. Raises FileNotFoundError if it holds
    none of these models, ValueError if the model lacks weights, or is only adapters."""
    folder = Path(folder)
    if (folder / texts.DESCRIPTION).is_file():
        from trials.tasks.text.text_model import TextModel  # brings transformers

        return TextModel(folder, device)
    if (folder / images.DESCRIPTION).is_file():
        return ImageClassifier(folder, device)
    if (folder / tables.DESCRIPTION).is_file() or not (folder / CONFIG).is_file():
        return TableModel(folder)
    what = "holds a model of tokens or of another program, which is not loaded here"
    raise FileNotFoundError(f"{folder} {what}; transformers loads it (docs/final-training.md)")
