"""Commands in study files: placeholders and parameters that do not match are mistakes."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hpsearch.errors import SpecError
from hpsearch.study_file.reading import advice, parse
from hpsearch.study_file.schema import study_file_schema

STUDY: dict[str, Any] = {
    "study": "commands",
    "task": {"kind": "command", "run": "train --lr {lr} --m {m} --epochs {budget} {folder}"},
    "space": {
        "lr": {"type": "float", "low": 0.1, "high": 1},
        "m": {"type": "float", "low": 0, "high": 1, "when": {"lr": 1}},
    },
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 3, "per_trial": {"epochs": 9}},
}
SCHEMA = study_file_schema()


def changed(run: str | None = None, **sections: Any) -> str:
    """The study with another command line, and other sections."""
    task = STUDY["task"] if run is None else {**STUDY["task"], "run": run}
    study = {**STUDY, "task": task, **sections}
    study["space"]["m"].pop("when", None)
    return yaml.safe_dump(study, sort_keys=False)


def problems_of(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse(text, base=Path("/nowhere"))
    return "\n".join(caught.value.problems)


def test_a_command_is_read_without_being_started_and_uses_all_parameters():
    spec = parse(changed(), base=Path("/nowhere"))
    assert spec.task["kind"] == "command"
    assert not list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(spec.text)))
    assert parse(changed("t {params}", settings={"n": 1}), base=Path("/nowhere"))


@pytest.mark.parametrize(
    ("run", "settings", "noted"),
    [
        ("t --mode {mode}", {"mode": "-x"}, ["--mode={mode}"]),
        ("t --mode={mode}", {"mode": "-x"}, []),
        ("t --mode fast {mode}", {"mode": "-x"}, []),
        ("t --mode {mode}", {"mode": "x-"}, []),
        ("t --mode {mode}", {"mode": -0.5}, []),
    ],
)
def test_a_text_that_programs_take_for_a_flag_is_noted(run, settings, noted):
    spec = parse(changed(f"{run} {{lr}} {{m}}", settings=settings), base=Path("/nowhere"))
    assert [note.rpartition(" ")[2] for note in advice(spec)] == noted


@pytest.mark.parametrize(
    ("run", "sections", "said"),
    [
        ("t {lr} {m} {mm}", {}, "task.run: nothing is named mm, so {mm} has no value"),
        ("t {lr} {m} {mm}", {}, "did you mean m?"),
        ("t {lr}", {}, "space.m: the command does not use it; write {m} where its value goes"),
        ("t {lr} {m}", {"settings": {"n": 1}}, "settings.n: the command does not use it"),
        ("t {lr} {m} {seed}", {"settings": {"seed": 1}}, "settings.seed: {seed} is what every"),
        ("t {lr} {m} {budget}-{resume}", {}, "{resume} has no value in some trials"),
        ("t '{lr} {m}", {}, "task.run: cannot be split into words: no closing quotation"),
    ],
)
def test_a_mistake_has_its_line(run, sections, said):
    assert said in problems_of(changed(run, **sections))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"report": {"tensorboard": "runs/*"}}, None),
        ({"report": {"tensorboard": "runs/*"}, "resource": "epoch+1"}, None),
        ({"report": {"tensorbord": "runs"}}, "task.report: 'tensorbord' is not a library"),
        ({"report": {"tensorboard": "../runs"}}, "task.report: must be a path inside"),
        ({"report": {"tensorboard": 3}}, "task.report: must name folders, such as runs/*, not 3"),
        ({"report": {}}, "task.report: must name one format"),
        ({"report": {"tensorboard": "r"}, "reports": "r.csv"}, "task.reports: is not used beside"),
        (
            {"report": {"tensorboard": "r"}, "run": "t {lr} {m}"},
            "task.report: reads files of the attempt's folder, and the command does not use",
        ),
    ],
)
def test_files_that_reports_are_read_from_are_named_by_their_format(keys, said):
    text = changed(task={**STUDY["task"], **keys})
    is_valid = jsonschema.Draft202012Validator(SCHEMA).is_valid(yaml.safe_load(text))
    if said is None:
        assert is_valid
        assert parse(text, base=Path("/nowhere")).task["report"] == keys["report"]
    else:
        assert said in problems_of(text)


def test_what_is_sometimes_left_out_has_a_word_to_itself():
    space = {
        "on": {"type": "categorical", "choices": [True, False]},
        "lr": {"type": "float", "low": 0.1, "high": 1},
        "m": {"type": "float", "low": 0, "high": 1, "when": {"on": True}},
    }
    study = {**STUDY, "space": space}
    study["task"] = {"kind": "command", "run": "t {on} --opt {lr},{m}"}
    assert "{m} has no value in some trials" in problems_of(yaml.safe_dump(study))
    space["m"] = {"type": "categorical", "choices": [None, 0.5]}
    assert "{m} has no value in some trials" in problems_of(yaml.safe_dump(study))
