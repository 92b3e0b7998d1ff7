"""A command line: split as a shell would, then filled; what has no value is left out."""

import argparse

import pytest

from trials.contract import TaskError
from trials.descriptions.command_line import CommandLine

VALUES = {"lr": 0.5, "name": "a 'b' $HOME; rm -rf *", "on": True, "none": None, "n": 3}


def filled(text: str) -> list[str]:
    return CommandLine(text).filled(VALUES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train --lr {lr}", ["train", "--lr", "0.5"]),
        ("train '--lr={lr}' \"a b\"", ["train", "--lr=0.5", "a b"]),
        ("train {name}", ["train", VALUES["name"]]),
        ("train --on {on}", ["train", "--on", "true"]),
        ("train {n}-{lr}", ["train", "3-0.5"]),
        ("train {{n}} '{{\"a\": {n}}}'", ["train", "{n}", '{"a": 3}']),
        ("train \\\n  --lr {lr}", ["train", "--lr", "0.5"]),
        # What has no value goes, with the flag before it.
        ("train --none {none} x", ["train", "x"]),
        ("train -m {none} x", ["train", "x"]),
        ("train --none={none} x", ["train", "x"]),
        ("train --fast --none={none} x", ["train", "--fast", "x"]),
        ("train --resume {none}/state.pt", ["train"]),
        ("train x {none}", ["train", "x"]),
        ("train --lr={lr} {none}", ["train", "--lr=0.5"]),
        ("train --lr {lr} {none}", ["train", "--lr", "0.5"]),
        ("train -- {none}", ["train", "--"]),
        ("train --two {none} {none}", ["train"]),
    ],
)
def test_values_are_put_in_after_the_split(text, words):
    assert filled(text) == words


@pytest.mark.parametrize("value", [-1.2e-05, -1e20, -5e-324, -1.7e308, -0.5, -3, -1e16])
@pytest.mark.parametrize("text", ["t --shift {shift}", "t --shift={shift}", "t -s {shift}"])
def test_a_negative_number_is_written_so_that_argparse_reads_it(text, value):
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--shift", type=type(value))
    words = CommandLine(text).filled({"shift": value})
    assert parser.parse_args(words[1:]).shift == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("train 'a", "cannot be split into words: no closing quotation"),
        ("train {lr", "expected '}' before end of string; write {{ and }}"),
        ("train }", "write {{ and }} for braces of the command's own"),
        ("train {}", "has a placeholder that is not the name of a parameter"),
        ("train {lr:.2f}", "has a placeholder that is not the name of a parameter"),
        ("train '{\"a\": 1}'", "has a placeholder that is not the name of a parameter"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(text, said):
    with pytest.raises(TaskError) as caught:
        CommandLine(text)
    assert said in str(caught.value)


def test_it_knows_its_program_and_the_words_that_may_be_files():
    line = CommandLine("python train.py --lr {lr} '{{x}}'")
    assert line.program == "python"
    assert line.plain_words == ["python", "train.py", "--lr", "{x}"]
    assert line.names == {"lr"}
    assert CommandLine("{lr} x").program is None
