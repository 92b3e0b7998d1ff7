"""`track`: how trackers are written, and every mistake in it."""

from pathlib import Path

import jsonschema
import pytest

from hpsearch.plugins.mlflow.options import MlflowOptions
from hpsearch.study_file.reading import parse
from hpsearch.study_file.schema import study_file_schema
from support.files.study_files import GOOD, problems_of
from trials.descriptions import yaml_source

VALIDATOR = jsonschema.Draft202012Validator(study_file_schema())


def fits_the_schema(track: str) -> bool:
    return bool(VALIDATOR.is_valid(yaml_source.read(f"{GOOD}track: {track}\n").value))


@pytest.mark.parametrize(
    ("track", "kinds"),
    [
        ("mlflow", ["mlflow"]),
        ("[mlflow, tensorboard]", ["mlflow", "tensorboard"]),
        ("{mlflow: {uri: sqlite:///mlflow.db}}", ["mlflow"]),
        ("[wandb, {tensorboard: }]", ["wandb", "tensorboard"]),
        ("[{wandb: {project: demo, entity: us, mode: offline, folder: out}}]", ["wandb"]),
        ("[]", []),
        ("", []),
    ],
)
def test_a_tracker_is_a_name_or_a_mapping_and_several_are_a_list(track, kinds):
    spec = parse(f"{GOOD}track: {track}\n", base=Path())
    assert [tracker.kind for tracker in spec.track] == kinds
    assert fits_the_schema(track)


LINE = GOOD.count("\n") + 1


@pytest.mark.parametrize(
    ("track", "problem"),
    [
        ("[mlfow]", "track[0]: 'mlfow' is not a tracker; did you mean mlflow?"),
        ("[mlflow, neptune]", "track[1]: 'neptune' is not a tracker; known are mlflow, "),
        ("[{wandb: {projekt: x}}]", "track[0].wandb.projekt: unknown key; did you mean project?"),
        ("[{wandb: {mode: of}}]", "track[0].wandb.mode: should be 'online' or 'offline', not 'of'"),
        (
            "[{wandb: {project: ''}}]",
            "track[0].wandb.project: String should have at least 1 character",
        ),
        ("[{wandb: demo}]", "track[0].wandb: should be a mapping (key: value), not 'demo'"),
        ("[{mlflow: {}, wandb: {}}]", "track[0].wandb: stands beside mlflow"),
        ("[mlflow, {mlflow: {}}]", "track: names mlflow twice"),
        ("[{}]", "track[0]: names no tracker"),
        ("[7]", "track[0]: should be a mapping (key: value), not 7"),
        ("7", "track: should be a valid list, not 7"),
        ("[{mlflow: {uri: 'http://me:pw@host'}}]", "track[0].mlflow.uri: has a password in it"),
    ],
)
def test_a_mistake_has_its_place_and_a_remedy(track, problem):
    (found,) = problems_of(f"{GOOD}track: {track}\n")
    assert found.startswith(f"study.yaml:{LINE}: {problem}")
    assert "pw" not in found
    to_see_in_two_parts = ("twice", "password", "stands beside", "names no tracker")
    takes_two_parts_to_see = any(words in problem for words in to_see_in_two_parts)
    assert fits_the_schema(track) is takes_two_parts_to_see


@pytest.mark.parametrize(
    ("uri", "is_refused"),
    [
        ("http://me:p/w@host", True),
        ("http://me:1234@host", True),
        ("postgresql://host/db?sslmode=require&password=x", True),
        ("postgresql://me@host:5432/db", False),
        ("http://host:5000/me@here", False),
        ("databricks://profile:scope", False),
        ("sqlite:///C:/me@here/x.db", False),
    ],
)
def test_only_a_password_is_one(uri, is_refused):
    options = MlflowOptions.model_construct(uri=uri)
    assert bool(list(options.mistakes())) is is_refused
