"""The documentation names what there is: every setting, task field, metric, sampler, pruner and
key."""

import inspect
import json
import re

import pytest
import yaml

from hpsearch.study_file import methods, parameters
from hpsearch.study_file import models as spec
from hpsearch.study_file import reading as spec_file
from support.files import pages
from trials.contract import Setting
from trials.descriptions.builtin import BUILT_IN, describe
from trials.settings import TABLE
from trials.tasks.function.trial import FunctionTrial

DOCS = pages.DOCS
STUDY_FILE = pages.read("study-file")
TASKS = STUDY_FILE + pages.read("tasks")
OWN_CODE = pages.read("own-training-code")


def row(setting: Setting) -> str:
    """The line that documents a setting."""
    kind = {float: "number", int: "whole number", str: "text", bool: "true or false"}[setting.type]
    bounds = (("at least", setting.low), ("above", setting.above), ("at most", setting.high))
    limits = [
        *map(str, setting.choices or ()),
        *(f"{word} {limit}" for word, limit in bounds if limit is not None),
    ]
    limits += ["null"] if setting.nullable else []
    limits += [setting.word] if setting.word else []
    cells = [f"`{setting.name}`", kind, written(setting.default), ", ".join(limits), setting.about]
    return f"| {' | '.join(cells)} |"


def written(value: object) -> str:
    """A value as YAML reads it back: 1.0e-8, where 1e-08 would be text."""
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"^(\d+)e-0?(\d+)$", r"\1.0e-\2", text)


def test_the_settings_table_is_the_one_the_program_has():
    documented = re.search(r"\| setting \|.*\n\|---.*\n((?:\|.*\n)*)", STUDY_FILE)
    assert documented
    expected = "".join(f"{row(setting)}\n" for setting in TABLE.values())
    assert documented[1] == expected, f"docs/study-file.md should have these rows:\n{expected}"


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_field_and_metric_of_a_built_in_task_is_documented(kind):
    description = describe(kind)
    assert f"`{kind}`" in TASKS
    for name in [*description.fields, *(description.metrics or ())]:
        assert f"`{name}`" in TASKS, name


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_setting_of_a_tasks_own_is_documented(kind):
    own = [
        setting
        for setting in (describe(kind).settings or {}).values()
        if TABLE.get(setting.name) != setting
    ]
    for line in map(row, own):
        assert f"{line}\n" in TASKS, f"docs/tasks.md should have this row:\n{line}"


@pytest.mark.parametrize("name", [*methods.SAMPLERS, *methods.PRUNERS, "promotion"])
def test_every_sampler_and_pruner_is_documented(name):
    assert f"`{name}`" in STUDY_FILE


@pytest.mark.parametrize(
    "model",
    [
        *(spec.StudySpec, spec.Objective, spec.StudyBudget),
        *(spec.PerTrial, spec.Search, spec.Confirm, spec.Resources),
        *(parameters.FloatParameter, parameters.CategoricalParameter),
    ],
)
def test_every_key_of_the_study_file_is_documented(model):
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key not in ("base", "text"):  # not in the file
            assert re.search(rf"\b{key}\b", STUDY_FILE), f"{model.__name__}: {key}"


def test_every_attribute_of_a_trial_handle_is_documented():
    handle = set(re.findall(r"^    (\w+):", str(inspect.getdoc(FunctionTrial)), flags=re.MULTILINE))
    handle |= {name for name in vars(FunctionTrial) if not name.startswith("_")}
    assert {"seed", "report", "save"} <= handle
    for name in handle:
        assert f"trial.{name}" in OWN_CODE, name


@pytest.mark.parametrize(
    "text", pages.texts("study-file", "yaml") + pages.texts("own-training-code", "yaml")
)
def test_the_study_files_shown_are_right(text):
    assert spec_file.parse(text, base=DOCS).study == yaml.safe_load(text)["study"]


def test_links_between_the_pages_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
