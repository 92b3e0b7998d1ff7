"""The data that recorded workloads train on, made from the standard library, scikit-learn's bundled
sets and public files.

A study file in `benchmarks/recorded` names its data as `data/NAME`. `make` writes those that this
module knows and that are missing. The same sources give the same files:

- `banking77-*.csv`: questions to a bank with their intents (`--data`)
- `minilm`: a link to a pretrained model (`--minilm`)
- `intents-*.csv`: some questions of each of thirty intents
- `sentences.csv`, `sentences-1200.csv`, `documents.csv`, `tags.jsonl`: sentences of the docstrings
  in Python's standard library, which differ between versions of Python: labelled with their module,
  without labels, and with a tag for each word
- `digits.npz`: a set that comes with scikit-learn
"""

import json
import os
import random
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

EXAMPLES = Path(__file__).parents[2] / "examples"

MODULES = (
    "tkinter",
    "idlelib",
    "email",
    "asyncio",
    "logging",
    "distutils",
    "xml",
    "importlib",
    "_pydecimal",
    "unittest",
    "http",
    "turtle",
    "typing",
    "_pyio",
    "doctest",
    "inspect",
)
"""The labels in `sentences.csv`."""
MOST_SENTENCES = 300
"""Of one module."""
LEFT_OUT = frozenset(
    {
        "site-packages",
        "test",
        "tests",
        "idle_test",
        "lib2to3",
        "turtledemo",
        "ensurepip",
        "pydoc_data",
        "__pycache__",
    }
)
"""Folders of the standard library that are not its own documentation."""
DOCUMENTS, TAGGED = 3600, 2500
"""Sentences in `documents.csv` and in `tags.jsonl`."""


@dataclass(frozen=True)
class Sources:
    """Where data comes from that is not installed; None where it was not given."""

    data: Path | None
    minilm: Path | None

    def banking77(self, name: str) -> pd.DataFrame:
        """One of the two files of Banking77, `text` and `category`.

        Raises:
            SystemExit: Its folder was not given.
        """
        if self.data is None:
            raise SystemExit("this workload needs --data DIR, a folder with banking77/ in it")
        return pd.read_csv(self.data / "banking77" / name)

    def model(self) -> Path:
        """The folder of the pretrained model.

        Raises:
            SystemExit: It was not given.
        """
        if self.minilm is None:
            raise SystemExit("this workload needs --minilm PATH, a local folder of the model")
        return self.minilm.resolve()


def make(task: Mapping[str, Any], folder: Path, sources: Sources) -> None:
    """Write the data that a task names and that is missing.

    Args:
        task: The `task` part of a study file.
        folder: The folder that its relative paths start from.
        sources: Where to take data from.

    Raises:
        SystemExit: A source was not given.
    """
    for value in task.values():
        if not isinstance(value, str):
            continue
        path = folder / value
        if path.name in MAKERS and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"unfinished-{os.getpid()}-{path.name}")
            MAKERS[path.name](unfinished, sources)
            unfinished.replace(path)


# --------------------------------------------------------------------------------- Banking77


def _questions(file: str, count: int) -> Callable[[Path, Sources], None]:
    """Writes questions of a file of Banking77, of each intent its share."""

    def write(path: Path, sources: Sources) -> None:
        from sklearn.model_selection import train_test_split

        frame = sources.banking77(file)
        chosen, _ = train_test_split(
            frame, train_size=count, stratify=frame["category"], random_state=0
        )
        chosen.to_csv(path, index=False)

    return write


def _few(file: str, rows: slice, intents: int = 30) -> Callable[[Path, Sources], None]:
    """Writes some questions of each of the first intents, by name."""

    def write(path: Path, sources: Sources) -> None:
        frame = sources.banking77(file).sample(frac=1, random_state=0)
        known = sorted(frame["category"].unique())[:intents]
        parts = [frame[frame["category"] == intent].iloc[rows] for intent in known]
        pd.concat(parts).to_csv(path, index=False)

    return write


def _link_to_model(path: Path, sources: Sources) -> None:
    path.symlink_to(sources.model())


# --------------------------------------------------------------------------------- sentences


def _sentences() -> list[tuple[str, str]]:
    """The different sentences of the standard library's docstrings, shuffled, each with the module
    that it comes from."""
    sys.path.insert(0, str(EXAMPLES))
    import demo_data

    root = Path(sysconfig.get_path("stdlib"))
    found: dict[str, tuple[str, str]] = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if LEFT_OUT.intersection(parts):
            continue
        module = parts[0].removesuffix(".py")
        for text in demo_data.sentences_in(file):
            found.setdefault(text.lower(), (text, module))
    pairs = list(found.values())
    random.Random(0).shuffle(pairs)
    return pairs


def _labelled(path: Path, sources: Sources, most: int | None = None) -> None:
    rows = []
    written: Counter[str] = Counter()
    for text, module in _sentences():
        if module in MODULES and written[module] < MOST_SENTENCES:
            written[module] += 1
            rows.append((text, module))
    pd.DataFrame(rows[:most], columns=["text", "label"]).to_csv(path, index=False)


def _documents(path: Path, sources: Sources) -> None:
    texts = [text for text, _ in _sentences()[:DOCUMENTS]]
    pd.DataFrame({"text": texts}).to_csv(path, index=False)


def _tagged(path: Path, sources: Sources) -> None:
    lines = []
    for text, _ in _sentences()[:TAGGED]:
        words = WORD.findall(text)
        lines.append(json.dumps({"tokens": words, "tags": tags_of(words)}) + "\n")
    path.write_text("".join(lines))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORD = re.compile(r"[A-Za-z0-9'-]+|[^\sA-Za-z0-9]")
DETERMINERS = _words("a an the this that these those each every any some no all its")
PREPOSITIONS = _words("of in on at by for with from into onto over under as about between through")
MODALS = _words("can could may might must shall should will would")
NEGATIONS = frozenset({"not", "never", "cannot"})
CLAUSES = _words("if when where while because unless whether which who since until")
ENDS = _words("and or but is are was were be been has have had to")
"""Words that end a phrase."""


def tags_of(words: Iterable[str]) -> list[str]:
    """The tag of each word, by rules, in BIO: noun phrases after a determiner, what follows a
    preposition, verbs after a modal or `to`, negations, and clauses up to the next comma."""
    tags: list[str] = []
    kind: str | None = None
    for word in words:
        begun, goes_on = _next(word.lower(), kind)
        if begun is not None:
            kind = begun
            tags.append(f"B-{kind}")
        elif goes_on:
            tags.append(f"I-{kind}")
        else:
            kind = None
            tags.append("O")
    return tags


def _next(word: str, kind: str | None) -> tuple[str | None, bool]:
    """The phrase that a word begins, if any, and else whether it belongs to the one before it.

    Args:
        word: In lower case.
        kind: The phrase that the word before belongs to; None where that is in none.
    """
    if not word[0].isalnum():
        return None, kind == "CLAUSE" and word not in ",.;"
    if kind == "CLAUSE":
        return None, True
    for begun, words in _BEGIN:
        if word in words:
            inside = kind == "PLACE" and begun == "NOUN"  # of the list: one phrase
            return (None, True) if inside else (begun, True)
    if word.isdigit():
        return "NUMBER", True
    ended = word in ENDS or kind in ("NEGATION", "NUMBER")
    return None, kind is not None and not ended


_BEGIN = (
    ("CLAUSE", CLAUSES),
    ("PLACE", PREPOSITIONS),
    ("NOUN", DETERMINERS),
    ("VERB", MODALS | {"to"}),
    ("NEGATION", NEGATIONS),
)
"""Which words begin a phrase, and of which kind."""


# ------------------------------------------------------------------------------ scikit-learn


def _digits(path: Path, sources: Sources) -> None:
    from sklearn.datasets import load_digits

    found = load_digits()
    images = np.round(found.images * (255 / 16)).astype(np.uint8)
    with path.open("wb") as file:  # numpy would add an ending to the name
        np.savez_compressed(file, images=images, labels=found.target)


MAKERS: dict[str, Callable[[Path, Sources], None]] = {
    "banking77-train-2000.csv": _questions("train.csv", 2000),
    "banking77-test-600.csv": _questions("test.csv", 600),
    "banking77-train-6000.csv": _questions("train.csv", 6000),
    "banking77-test-1000.csv": _questions("test.csv", 1000),
    "intents-30x10.csv": _few("train.csv", slice(0, 10)),
    "intents-30x25.csv": _few("train.csv", slice(0, 25)),
    "intents-77x13.csv": _few("train.csv", slice(0, 13), 77),
    "intents-77-test.csv": _few("test.csv", slice(0, 3), 77),
    "intents-test.csv": _few("test.csv", slice(0, 5)),
    "minilm": _link_to_model,
    "sentences.csv": _labelled,
    "sentences-1200.csv": partial(_labelled, most=1200),
    "documents.csv": _documents,
    "tags.jsonl": _tagged,
    "digits.npz": _digits,
}
"""The writer of each file that a study file may name."""
