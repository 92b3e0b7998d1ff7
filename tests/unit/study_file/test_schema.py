"""The JSON Schema of the study file: it accepts what is read, and refuses what is wrong alone."""

import importlib
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import optuna.samplers
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.errors import SpecError
from hpsearch.study_file.methods import CURVE_GP, PRUNERS, SAMPLERS, arguments_of
from hpsearch.study_file.reading import parse
from hpsearch.study_file.schema import study_file_schema
from hpsearch.study_file.starters.starters import STARTERS, starter
from support.files.study_files import GOOD
from trials import tasks
from trials.contract import Setting, TaskError, Unit
from trials.descriptions import yaml_source
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.description import Field
from unit.study_file.test_checks import MISTAKES

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOWHERE = Path("/nowhere")
SCHEMA = study_file_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def problems(text: str) -> list[str]:
    """What the schema says of the text of a study file."""
    found = VALIDATOR.iter_errors(yaml_source.read(text).value)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


def is_read(text: str) -> bool:
    """Whether it is read, and its task built, as far as that goes without data."""
    try:
        spec = parse(text, base=NOWHERE)
        if spec.task["kind"] in BUILT_IN:
            tasks.load(spec.task, NOWHERE)
    except (SpecError, TaskError):
        return False
    return True


def changed(**sections: Any) -> str:
    """The good study file with other sections."""
    return yaml.safe_dump({**yaml.safe_load(GOOD), **sections}, allow_unicode=True)


def own_code(**sections: Any) -> str:
    """A study of training code of one's own, with these sections."""
    study = {
        "study": "own",
        "task": {"kind": "own.module:train"},
        "space": {"x": {"type": "float", "low": 0, "high": 1}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"trials": 3, "per_trial": {"epochs": 9}},
    }
    return yaml.safe_dump({**study, **sections}, allow_unicode=True)


# -------------------------------------------------------------------------------- the schema itself


def test_it_names_its_dialect_says_what_every_key_means_and_every_reference_leads_somewhere():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    silent = []
    for where, schema in properties_in(SCHEMA):
        if "description" not in schema and "$ref" in schema:
            schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
        if "description" not in schema:
            silent.append(where)
    assert not silent
    for name in re.findall(r"'\$ref': '#/\$defs/([^']*)'", repr(SCHEMA)):
        assert name in SCHEMA["$defs"]


def properties_in(schema: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that a mapping of fixed keys may have, with its schema."""
    if isinstance(schema, list):
        for i, part in enumerate(schema):
            yield from properties_in(part, f"{where}[{i}]")
    if not isinstance(schema, dict):
        return
    for name, part in schema.items():
        if name == "properties" and schema.get("additionalProperties") is False:
            yield from ((f"{where}.{key}", value) for key, value in part.items())
        yield from properties_in(part, f"{where}.{name}")


# --------------------------------------------------------------------------------- what is accepted

NEEDED: dict[str, dict[str, Any]] = {
    "percentile": {"percentile": 25.0},
    "patient": {"patience": 2, "wrapped_pruner": "median"},
    "threshold": {"upper": 1.0},
}
"""Pruners that cannot do without arguments, with some that will do."""


@pytest.mark.parametrize("kind", STARTERS)
def test_a_starter_is_accepted(kind):
    assert not problems(starter(kind, text="text", label="label"))


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_an_example_is_accepted(path):
    assert not problems(path.read_text(encoding="utf-8"))


def test_the_demos_study_file_is_accepted(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.delitem(sys.modules, "demo", raising=False)
    assert not problems(importlib.import_module("demo").STUDY)


def study_files_shown() -> Iterator[str]:
    for page in PAGES:
        for text in re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL):
            if text.startswith("study:"):
                yield text


@pytest.mark.parametrize("text", list(study_files_shown()))
def test_a_study_file_of_the_docs_is_accepted(text):
    assert not problems(text)


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("settings", None),
        ("search", None),
        ("resources", None),
        ("enqueue", None),
        ("checkpoints", "s3://bucket/studies"),
        ("checkpoints", {"folder": None, "max_gb": 10}),
        ("seed", None),
        ("seed", 2**63 - 1),
        ("objective", [{"metric": "accuracy", "direction": "maximize"}]),
        ("constraints", {"loss": {"max": 2, "min": None}}),
        ("budget", {"wall_clock": " 1 h 30m", "per_trial": {"epochs": 3, "steps": None}}),
        ("budget", {"cost": 3, "cost_per_gpu_hour": 2.5, "per_trial": {"tokens": 10000}}),
        (
            "budget",
            {
                "cost": 3,
                "cost_per_gpu_hour": {"A100": 2.5, "T4": 1},
                "per_trial": {"tokens": 10000},
            },
        ),
        ("budget", {"trials": 3, "cost": None, "per_trial": {"seconds": 9, "time_limit": "90m"}}),
        ("search", {"sampler": "tpe", "pruner": "none", "confirm": None}),
        ("search", {"pruner": {"kind": "promotion", "first_rung": 1}}),
        ("search", {"warm_start": "auto"}),
        ("search", {"warm_start": ["before", "auto"]}),
        ("search", {"warm_start": None}),
        ("search", {"pruner": {"kind": "patient", "patience": 2, "wrapped_pruner": "median"}}),
        ("search", {"pruner": {"kind": "patient", "patience": 2, "wrapped_pruner": None}}),
        ("search", {"pruner": {"kind": "hyperband", "max_resource": "auto"}}),
        ("resources", {"workers": 3, "gpu": 1, "lease": "1d", "cpu": 0.5}),
        ("settings", {"micro_batch": "auto", "patience": None}),
    ],
)
def test_what_is_read_is_accepted(section, value):
    text = changed(**{section: value})
    assert is_read(text)
    assert not problems(text)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_takes_its_defaults(name):
    method_class = getattr(optuna.samplers, SAMPLERS[name])
    known = arguments_of(method_class).model_fields
    told = {key: each.default for key, each in known.items() if not each.is_required()}
    for sampler in (name, {"kind": name}, {"kind": name, **told}):
        assert not problems(changed(search={"sampler": sampler}))


@pytest.mark.parametrize("name", PRUNERS)
def test_a_pruner_needs_the_arguments_without_defaults(name):
    needed = NEEDED.get(name, {})
    text = changed(search={"pruner": {"kind": name, **needed}})
    assert is_read(text)
    assert not problems(text)
    for search in ({"pruner": name}, {"pruner": {"kind": name}}):
        assert is_read(changed(search=search)) == (not needed)


@pytest.mark.parametrize(
    "prior", [{"prior": 3e-4}, {"prior": 3e-4, "confidence": "low"}, {"prior": None}]
)
def test_a_prior_is_accepted_where_it_is_read(prior):
    space = yaml.safe_load(GOOD)["space"]
    space["learning_rate"] |= prior
    space["optimizer"] |= {"prior": "sgd", "confidence": "high"}
    text = changed(space=space, search={"sampler": "curve_gp"})
    assert is_read(text)
    assert not problems(text)


# ---------------------------------------------------------------------------------- what is refused

_OF_SEVERAL_PARTS = """\
a limit on nothing; an unknown metric of several; argument of promotion; argument out of range; \
eta; missing argument; no candidates; seed of the sampler; setting out of range; type of an \
argument; unknown metric; unknown parameter; unknown part of the task; unknown sampler argument; \
unknown setting; wrapped pruner; \
GPUs that nothing trains on; a batch smaller than its processes; a share of a GPU for each of \
several processes; a GPU and a half; a limit without bounds; bound out of range; choice out of \
range; infinite choice; list as a choice of a number; choices twice; choices twice, and more; cost \
without a price; empty condition; equal choices; float for a whole number; log from zero; negative \
step; no limit; no unit; step with log; two units; warm start with a study twice; zero duration; \
warm start of itself; warm start that the sampler ignores; low above high; step that does not \
divide; minute step; fixed and searched; condition on nothing; condition on a fixed setting; \
condition on itself; impossible condition; cycle of conditions; condition on an unknown name; \
condition on itself in an expression; condition that never holds; condition that cannot be read; \
cycle of expressions; requirement of an unknown name; requirement between text and a number; \
requirement that calculates \
with a text; requirement of settings alone; requirement that nothing keeps; requirements that \
exclude each other; enqueued against a requirement; a metric twice; a sampler of one objective; \
prior outside \
the range; prior off the grid; prior that is no choice; prior that the sampler ignores; limits the \
wrong way; reports past the end; too many reports; fractional report grid; endless search; \
arguments that exclude each other; first rung past the end; enqueued outside; enqueued unknown; \
enqueued inactive"""
OF_SEVERAL_PARTS = _OF_SEVERAL_PARTS.split("; ")
"""Mistakes that take two keys of a study file to see, the task, the method, or more than a type and
a range."""

OF_THE_TEXT = ["key twice"]
"""Mistakes that the values no longer show."""


@pytest.mark.parametrize("name", sorted(MISTAKES.keys() - {*OF_SEVERAL_PARTS, *OF_THE_TEXT}))
def test_a_mistake_is_refused_by_its_place_its_type_or_its_range(name):
    written, instead, _ = MISTAKES[name]
    assert problems(GOOD.replace(written, instead))


@pytest.mark.parametrize("name", [*OF_SEVERAL_PARTS, *OF_THE_TEXT])
def test_other_mistakes_are_known_to_be_left_to_the_reader(name):
    written, instead, _ = MISTAKES[name]
    assert not problems(GOOD.replace(written, instead))


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("search", {"sampler": {"kind": "tep"}}),
        ("search", {"pruner": {"eta": 3}}),
        ("task", {"train": "train.csv"}),
        ("task", {"kind": "text_clasification"}),
        ("space", {"x": {"type": "int", "low": 0.5, "high": 2}}),
        ("search", {"warm_start": "before"}),
        ("search", {"warm_start": []}),
        ("task", None),
        ("budget", {"trials": 3, "per_trial": {"epochs": 0}}),
        ("budget", {"trials": 3}),
        ("resources", {"lease": "soon"}),
        ("checkpoints", {"max_gb": 0}),
    ],
)
def test_what_is_wrong_by_itself_is_refused(section, value):
    assert problems(changed(**{section: value}))


def test_own_code_takes_any_setting_and_more_gpus_than_one():
    assert not problems(own_code(settings={"any": [1, {}]}, resources={"gpu": 4}))


# --------------------------------------------------------------------- whatever study file is drawn

DURATIONS = st.sampled_from(["2h", "1h30m", "45s", "1 d 2 h", " 5m ", "0.5h", 90, 1.5])


def number_of(setting: Setting) -> st.SearchStrategy[float]:
    """Numbers of a setting's type within its limits."""
    least = setting.low if setting.low is not None else setting.above
    bounds = {
        "min_value": -1000 if least is None else least,
        "max_value": 1000 if setting.high is None else setting.high,
    }
    if setting.type is int:
        low, high = math.ceil(bounds["min_value"]), math.floor(bounds["max_value"])
        numbers: st.SearchStrategy[float] = st.integers(low, high)
    else:
        numbers = st.floats(**bounds)
    return numbers.filter(lambda value: setting.problem_with(value) is None)


def value_of(setting: Setting) -> st.SearchStrategy[Any]:
    """Values that a setting accepts."""
    if setting.choices is not None:
        values: st.SearchStrategy[Any] = st.sampled_from(setting.choices)
    elif setting.type in (int, float):
        values = number_of(setting)
    else:
        values = st.booleans() if setting.type is bool else st.text(max_size=5)
    values = values if setting.word is None else values | st.just(setting.word)
    return values | st.none() if setting.nullable else values


@st.composite
def parameter_of(draw: st.DrawFn, setting: Setting) -> dict[str, Any]:
    """A parameter that searches a setting."""
    if setting.type not in (int, float) or draw(st.booleans()):
        choices = draw(st.lists(value_of(setting), min_size=1, max_size=3, unique=True))
        return {"type": "categorical", "choices": choices}
    low, high = sorted(draw(st.tuples(number_of(setting), number_of(setting))))
    kind = "int" if isinstance(low, int) and isinstance(high, int) else "float"
    written: dict[str, Any] = {"type": kind, "low": low, "high": high}
    if low > 0:
        written["log"] = draw(st.booleans())
    return written


def task_value(field: Field) -> st.SearchStrategy[Any]:
    """Values that a key of a task may have."""
    by_type: dict[type, st.SearchStrategy[Any]] = {
        str: st.sampled_from(field.limits.get("enum", ("a", "data/b.csv"))),
        int: st.integers(1, 100),
        float: st.floats(0.01, 0.99),
        bool: st.booleans(),
        list: st.lists(
            st.text(min_size=1, max_size=4),
            min_size=field.limits.get("minItems", 0),
            max_size=field.limits.get("maxItems", 3),
            unique=True,
        ),
        dict: st.sampled_from([{"scratch": {}}, {"scratch": {"layers": 1}}, {"scratch": None}]),
    }
    return st.one_of([by_type[kind] for kind in field.types])


@st.composite
def study_files(draw: st.DrawFn) -> dict[str, Any]:
    """Study files of built-in tasks that are right."""
    task = BUILT_IN[draw(st.sampled_from(sorted(BUILT_IN)))]
    table = task.settings or {}
    names = draw(st.lists(st.sampled_from(sorted(table)), min_size=2, max_size=8, unique=True))
    searched = names[: draw(st.integers(1, len(names)))]
    unit = draw(st.sampled_from(sorted(each.value for each in task.units - {Unit.TOKENS})))
    part = {f.name: draw(task_value(f)) for f in task.fields.values() if f.required}
    space = {name: draw(parameter_of(table[name])) for name in searched}
    incomparable: frozenset[str] = frozenset()
    if task.per_token is not None and len(space.get("model", {}).get("choices", ())) > 1:
        incomparable, _ = task.per_token
    metric = draw(
        st.sampled_from(sorted((task.of_part(part).metrics or frozenset()) - incomparable))
    )
    sampler = draw(st.sampled_from([CURVE_GP, *sorted(SAMPLERS.keys() - {"brute_force"})]))
    pruner = draw(st.sampled_from(["promotion", *sorted(PRUNERS.keys() - NEEDED.keys())]))
    optional = {
        "seed": st.none() | st.integers(0, 2**63 - 1),
        "checkpoints": st.sampled_from(["folder", {"max_gb": 1}, {"folder": "s3://b"}, None]),
        "resources": st.fixed_dictionaries(
            {}, optional={"gpu": st.sampled_from(["auto", 0, 0.5, 1]), "lease": DURATIONS}
        ),
        "constraints": st.just({metric: {"max": 3}}),
    }
    return {
        "study": draw(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,20}", fullmatch=True)) + "_",
        "task": {"kind": task.kind, **part},
        "settings": {name: draw(value_of(table[name])) for name in names[len(searched) :]},
        "space": space,
        "objective": {
            "metric": metric,
            "direction": draw(st.sampled_from(["minimize", "maximize"])),
        },
        "budget": {
            "wall_clock": draw(DURATIONS),
            "per_trial": {unit: draw(st.integers(1, 100)), "time_limit": draw(DURATIONS)},
        },
        "search": {"sampler": sampler, "pruner": pruner},
        **draw(st.fixed_dictionaries({}, optional=optional)),
    }


@given(study_files())
def test_whatever_study_file_is_right_is_accepted(study):
    text = yaml.safe_dump(study, allow_unicode=True)
    assert is_read(text)
    assert not problems(text)
