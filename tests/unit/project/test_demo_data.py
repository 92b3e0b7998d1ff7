"""The demo's data set: real sentences, a fair share for each library, and no label given away."""

import csv
import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from hpsearch.errors import DataError

EXAMPLES = Path(__file__).parents[3] / "examples"

LIBRARIES = """\
torch pytorch numpy np pandas pd sklearn scikit-learn scipy transformers ray sqlalchemy \
networkx nx sympy optuna plotly"""

Built = tuple[dict[str, int], list[tuple[str, str]], Path]
"""What `build` returned, the rows of the file, and the file."""


def load_example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


demo_data = load_example("demo_data")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    path = tmp_path_factory.mktemp("demo") / "sentences.csv"
    counts = demo_data.build(path, rows_per_library=400, seed=0)
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(file)]
    return counts, rows, path


@pytest.mark.thorough
def test_at_least_eight_libraries_give_four_thousand_sentences_each_its_share_and_none_twice(built):
    counts, rows, _ = built
    assert len(counts) >= 8
    assert sum(counts.values()) == len(rows) >= 4_000
    assert counts == Counter(label for _, label in rows)
    assert max(counts.values()) <= 400
    assert min(counts.values()) >= 250
    keys = Counter(re.sub(r"\d+", "0", text.lower()) for text, _ in rows)
    assert keys.most_common(1)[0][1] == 1


def test_every_row_is_a_sentence_of_six_to_forty_words_without_code_or_a_librarys_name(built):
    _, rows, _ = built
    for text, _ in rows:
        assert text[0].isupper(), text
        assert text.endswith("."), text
        assert 6 <= len(text.split()) <= 40, text
        assert not re.search(r"[`:<>=_\[\]{}/\\@#|*]|www\.", text), text
    names = {*demo_data.ALIASES, *LIBRARIES.split()}
    for text, label in rows:
        words = set(re.findall(r"[\w-]+", text.lower()))
        assert not words & names, (label, text)


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_file_and_another_seed_another(built, tmp_path):
    _, _, path = built
    demo_data.build(tmp_path / "again.csv", rows_per_library=400, seed=0)
    demo_data.build(tmp_path / "other.csv", rows_per_library=400, seed=1)
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()
    assert (tmp_path / "other.csv").read_bytes() != path.read_bytes()


@pytest.mark.thorough
def test_a_missing_library_is_made_up_for_by_another(tmp_path, monkeypatch):
    aliases = {name: names for name, names in demo_data.ALIASES.items() if name != "torch"}
    monkeypatch.setattr(demo_data, "ALIASES", {"no_such_library": ("no_such_library",), **aliases})
    counts = demo_data.build(tmp_path / "sentences.csv")
    assert len(counts) == demo_data.MOST_LIBRARIES
    assert "no_such_library" not in counts


def test_too_few_libraries_are_an_error_that_says_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_data, "ALIASES", {"sympy": ("sympy",), "scipy": ("scipy",)})
    with pytest.raises(
        DataError, match=r"2 installed libraries contain 800 sentences \(scipy, sympy\)"
    ):
        demo_data.build(tmp_path / "sentences.csv")
    assert not (tmp_path / "sentences.csv").exists()


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Return the sum of all the given values.", ["Return the sum of all the given values."]),
        (
            "Return the sum of `values` as :class:`Scalar` object.",
            ["Return the sum of values as Scalar object."],
        ),
        (
            "Convert the given NumPy array to a plain list.",
            ["Convert the given array to a plain list."],
        ),
        (
            "Fit the model to the data.\nThen score it on\nthe rest of the rows.",
            ["Fit the model to the data.", "Then score it on the rest of the rows."],
        ),
        (
            "Params:\n    The number of rows to be read at once.\n",
            ["The number of rows to be read at once."],
        ),
        (">>> Call this function with all the arguments.", []),
        ("Call foo(x=1, y=2) with all of the arguments.", []),
        ("See https://example.org for all of the other details.", []),
        ("x (int): The number of rows to be read.", []),
        ("Too short a sentence this.", []),
        ("the first letter is not a capital one.", []),
        ("The last character of this is not a stop", []),
        ("Any of the usual kinds of numbers, e.g.", []),
        ("Wraps a TorchModule so that it can be called.", []),
        ("A " + "very " * 40 + "long sentence.", []),
    ],
)
def test_only_plain_sentences_are_taken_from_a_docstring(docstring, expected):
    assert list(demo_data.sentences(docstring)) == expected


def test_a_source_that_does_not_parse_is_passed_over(tmp_path):
    template = tmp_path / "template.py"
    template.write_text(
        '"""A docstring that would be read if it could."""\nclass {{ name }}: pass\n'
    )
    assert list(demo_data._docstrings(template)) == []


@pytest.mark.thorough
def test_the_command_writes_the_file_and_counts_its_labels_without_importing_a_library(
    tmp_path, capsys, monkeypatch
):
    path = tmp_path / "sentences.csv"
    monkeypatch.delitem(sys.modules, "sympy", raising=False)
    assert demo_data.main([str(path)]) == 0
    printed = capsys.readouterr().out
    assert path.exists()
    assert "sympy" in printed
    assert f"sentences in {path}" in printed
    assert "sympy" not in sys.modules
