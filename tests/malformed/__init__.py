"""Tables of malformed input: study files, data, command lines and databases, each with what must be
said about it.

A case is a name, what makes it, the command that meets it, and its answer: the exit code, the place
that the message must name, and the remedy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STUDY = """\
study: flowers
seed: 7
task:
  kind: text_classification
  train: data/train.csv
  validation: 0.25
  text: text
  label: label
  model: {scratch: {layers: 1, width: 16}}
settings:
  schedule: cosine
space:
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}
  batch_size: {type: categorical, choices: [2, 4]}
objective: {metric: accuracy, direction: maximize}
budget:
  trials: 4
  per_trial: {epochs: 1}
resources: {workers: 1, cpu: 1, gpu: 0}
"""

ROWS = [
    f"a {word} day,{label}"
    for word, label in (("good", "up"), ("bad", "down"), ("fine", "up"), ("poor", "down"))
]
TABLE = "\n".join(["text,label", *ROWS * 4, ""])

Make = Callable[[Path], None]
"""Makes what is malformed, in a folder that has a good study.yaml and data/train.csv."""


@dataclass(frozen=True)
class Case:
    """Something malformed, and what is said about it."""

    name: str
    make: Make
    place: str
    remedy: str
    command: tuple[str, ...] = ("check", "study.yaml")
    code: int = 2


def good(folder: Path) -> None:
    """What every case starts from."""
    (folder / "data").mkdir()
    (folder / "data" / "train.csv").write_text(TABLE)
    (folder / "study.yaml").write_text(STUDY)


def nothing(folder: Path) -> None:
    """The good files as they are."""


def written(name: str, content: bytes | str) -> Make:
    """A file of this content."""

    def make(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def changed(*replacements: tuple[str, str]) -> Make:
    """The good study file with a piece replaced."""

    def make(folder: Path) -> None:
        text = STUDY
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "study.yaml").write_text(text)

    return make


def replaced(name: str, make: Callable[[Path], object]) -> Make:
    """Something else in the place of a file."""

    def replace(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return replace


def both(*makes: Make) -> Make:
    """One after the other."""

    def make(folder: Path) -> None:
        for each in makes:
            each(folder)

    return make
