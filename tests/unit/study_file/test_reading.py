"""Reading a study file: what it becomes, and files that are refused as a whole."""

from pathlib import Path

import pytest
import yaml

from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.models import Resources
from hpsearch.study_file.parameters import CategoricalParameter, FloatParameter, IntParameter
from hpsearch.study_file.reading import load, parse
from support.files.study_files import GOOD, problems_of
from trials import tasks
from trials.contract import Unit
from trials.descriptions import yaml_source


def changed(*replacements: tuple[str, str]) -> str:
    text = GOOD
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_a_study_file_becomes_frozen_objects():
    spec = parse(GOOD, base=Path("/somewhere"))
    assert (spec.study, spec.seed, spec.base, spec.text) == (
        "banking-intents",
        7,
        Path("/somewhere"),
        GOOD,
    )
    assert spec.task["train"] == "data/train.csv"
    assert isinstance(spec.space["learning_rate"], FloatParameter)
    assert isinstance(spec.space["batch_size"], CategoricalParameter)
    assert isinstance(spec.space["freeze_layers"], IntParameter)
    assert spec.space["momentum"].when == {"optimizer": ("sgd",)}
    assert spec.budget.wall_clock_s == 5400
    assert (spec.budget.per_trial.unit, spec.budget.per_trial.total) == (Unit.EPOCHS, 3)
    assert (spec.search.sampler.kind, spec.search.pruner.arguments) == ("tpe", {"eta": 3})
    assert spec.search.confirm is not None
    assert spec.search.confirm.seeds == 2
    assert spec.resources.gpu == 0.5
    assert spec.enqueue == [{"learning_rate": 5.0e-4, "batch_size": 32}]
    with pytest.raises(ValueError, match="frozen"):
        spec.seed = 8  # type: ignore[misc]


def test_what_is_left_out_has_a_default():
    text = changed(
        (
            "search:\n  sampler: tpe\n  pruner: {kind: promotion, eta: 3}\n"
            "  confirm: {top: 3, seeds: 2}\n",
            "",
        )
    )
    spec = parse(
        text.replace("resources: {workers: auto, cpu: 1, gpu: 0.5}\n", "resources:\n"), base=Path()
    )
    assert (spec.search.sampler.kind, spec.search.pruner.kind, spec.search.confirm) == (
        "curve_gp",
        "promotion",
        None,
    )
    assert spec.search.warm_start is None
    assert (spec.resources.workers, spec.resources.cpu, spec.resources.gpu) == ("auto", 1, "auto")
    assert (spec.resources.retries, spec.resources.report_deadline_s, spec.checkpoints.folder) == (
        2,
        1800,
        None,
    )


def test_own_training_code_takes_any_setting_and_metric():
    text = """
study: own
task: {kind: "my_code:train"}
settings: {anything: [1, {goes: here}]}
space: {x: {type: float, low: -1, high: 1}}
objective: {metric: whatever, direction: minimize}
budget: {trials: 3, per_trial: {steps: 10}}
"""
    assert parse(text, base=Path()).settings == {"anything": [1, {"goes": "here"}]}


def test_anchors_and_merges_can_be_used():
    text = changed(
        (
            "high: 1.0e-3, log: true}",
            "high: 1.0e-3, log: true}\n  weight_decay: {<<: *wide, high: 0.1}",
        ),
        ("learning_rate: {type", "learning_rate: &wide {type"),
    )
    assert parse(text, base=Path()).space["weight_decay"] == FloatParameter(
        type="float", low=1e-5, high=0.1, log=True
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2h", 7200),
        ("90m", 5400),
        ("1h30m", 5400),
        ("45s", 45),
        ("1d", 86400),
        ("0.5h", 1800),
        ("12", 12),
        ("2.5", 2.5),
    ],
)
def test_durations_are_seconds(written, seconds):
    assert parse(changed(("1h30m", written)), base=Path()).budget.wall_clock_s == seconds


TIME_LIMITS = {
    "report_deadline": 1800,
    "worker_timeout": 120,
    "lease": 45,
    "database_patience": 300,
    "disk_patience": 300,
    "stop_grace": 60,
}
RESOURCES = "resources: {workers: auto, cpu: 1, gpu: 0.5}"


def test_every_time_limit_of_the_resources_is_in_the_table():
    fields = Resources.model_fields
    assert {fields[name].alias for name in fields if name.endswith("_s")} == set(TIME_LIMITS)


@pytest.mark.parametrize("key", TIME_LIMITS)
def test_a_time_limit_is_a_duration_with_a_default(key):
    assert getattr(parse(GOOD, base=Path()).resources, f"{key}_s") == TIME_LIMITS[key]
    given = parse(changed((RESOURCES, f"resources: {{{key}: 1h30m}}")), base=Path())
    assert getattr(given.resources, f"{key}_s") == 5400


@pytest.mark.parametrize("key", TIME_LIMITS)
@pytest.mark.parametrize(
    "written", ["0", "0s", "-5", "1.0e+30", ".inf", ".nan", "99999999999999d", "null", "soon"]
)
def test_a_wrong_time_limit_is_reported_with_its_place(key, written):
    (problem,) = problems_of(changed((RESOURCES, f"resources: {{{key}: {written}}}")))
    assert problem.startswith(f"study.yaml:29: resources.{key}: must be a ")


def test_a_study_file_is_loaded_with_its_folder_as_base(tmp_path):
    file = tmp_path / "deep" / "study.yaml"
    (tmp_path / "deep" / "data").mkdir(parents=True)
    rows = "\n".join(f"some words {i},{i % 2}" for i in range(40))
    (tmp_path / "deep" / "data" / "train.csv").write_text(f"text,category\n{rows}\n")
    file.write_text("\ufeff" + GOOD, encoding="utf-8")
    assert load(file, inspect=tasks.inspect).base == tmp_path / "deep"


def test_problems_of_the_data_stand_at_the_line_that_names_it(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    with pytest.raises(SpecError, match=r"mine\.yaml:5: task\.train: .*train\.csv"):
        load(file, inspect=tasks.inspect)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("text,kategory\na,b\nc,d\n")
    with pytest.raises(SpecError, match=r"mine\.yaml:8: task\.label: .*'category'.*kategory"):
        load(file, inspect=tasks.inspect)
    assert load(file).study == "banking-intents"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "study.yaml:1: is empty; write a study file with: hpsearch init"),
        (b"# nothing\n", "study.yaml:1: is empty"),
        (b"- a\n- b\n", "study.yaml:1: must be a mapping that starts with study:"),
        (b"study: caf\xe9\n", "study.yaml:1: is not UTF-8 text"),
        (b"study: a\x00b\n", "contains the control character"),
        (b"study: " + b"[" * 3000, "is nested too deeply"),
        (b"a: &a [*a]\n", "contains itself"),
        (b"seed: " + b"9" * 5000, "is not a number that this program can hold"),
        (b"seed: 0x" + b"f" * 5000, "is not a number that this program can hold"),
        (b"seed: 0b" + b"1" * 2000, "is not a number that this program can hold"),
        (b"settings: {a: " + b"9" * 400 + b"}", "is not a number that this program can hold"),
        (b"? [a, b]\n: 1\n", "found a key that is a list or a mapping"),
        (b"a: {<<: 3}\n", "<< takes mappings"),
        (b"#" * (2 << 20), "is larger than 1 MB"),
        (b"a: [" + b"1," * 150_000 + b"1]", "more than 100000 values"),
        (b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a," * 500 + b"1]", "more than 100000"),
    ],
)
def test_a_file_that_is_not_a_study_file_is_refused(tmp_path, content, expected):
    file = tmp_path / "study.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load(file)
    assert expected in str(caught.value)


def test_aliases_that_stand_for_billions_are_refused():
    layers = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12))
    assert any(
        "more than 100000 values" in problem for problem in problems_of(f"a0: &a0 [x]\n{layers}")
    )


def test_merges_that_multiply_are_read_once():
    """Ten keys, merged ten times into each of thirty mappings."""
    first = "a0: &a0 {k: 1, l: 2}\n"
    merges = "".join(
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}], m{i}: {i}}}\n" for i in range(1, 30)
    )
    found = yaml_source.read(first + merges)
    assert not found.problems
    last = found.value["a29"]
    assert last == {"k": 1, "l": 2, **{f"m{i}": i for i in range(1, 30)}}
    wide = f"a: &a {{{', '.join(f'k{i}: 1' for i in range(1000))}}}\nb: {{<<: [{'*a, ' * 1000}]}}"
    assert "more than 100000 values" in yaml_source.read(wide).problems[0].what


@pytest.mark.parametrize(
    "text",
    [
        "{a: {<<: {x: 1, y: 2}, x: 3}}",
        "{a: {x: 3, <<: {x: 1, y: 2}}}",
        "{a: {<<: [{x: 1}, {x: 2, y: 2}]}}",
        "{a: {<<: [{<<: {x: 1}, z: 1}, {x: 2, z: 2, <<: {y: 5}}]}}",
        "{a: &a {x: 1}, b: &b {<<: *a, y: 2}, c: {<<: [*b, *a], y: 3}}",
        "{a: {<<: []}, b: {<<: {}}}",
    ],
)
def test_merges_mean_what_they_mean_to_yaml(text):
    assert yaml_source.read(text).value == yaml.safe_load(text)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UserError, match="there is no such study file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="is a folder"):
        load(tmp_path)
