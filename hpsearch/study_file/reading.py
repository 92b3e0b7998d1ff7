"""From a study file to a `StudySpec`, or to all mistakes in it, each with its line and a remedy.

Each part is checked alone, so that a mistake in one does not hide those in another. Then the parts
are checked against each other and against the task, and, if asked for, the data is inspected.
`advice` notes what is valid and may not work as expected.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, create_model

from hpsearch.errors import SpecError
from hpsearch.study_file import checks
from hpsearch.study_file import space as spaces
from hpsearch.study_file import text as study_text
from hpsearch.study_file.checks import Draft
from hpsearch.study_file.methods import PROMOTION, RECORDED
from hpsearch.study_file.models import Objective, StudySpec
from hpsearch.study_file.parameters import CategoricalParameter, Parameter
from hpsearch.study_file.space import is_open
from hpsearch.study_file.validation import Model, problems_of, shown
from trials.contract import Problem, TaskError
from trials.descriptions import yaml_source
from trials.descriptions.builtin import describe, with_folds
from trials.descriptions.command import COMMAND, line_of
from trials.descriptions.description import TaskDescription
from trials.descriptions.yaml_source import Source
from trials.settings import nearest

Inspect = Callable[[Mapping[str, Any], Path], list[Problem]]
"""Finds mistakes in a `task` section with relative paths, as `trials.tasks.inspect` does."""

_BY_PARTS = ("objective", "space")  # the top-level keys whose parts are checked one by one
_NOT_SECTIONS = ("objectives", "space", "base", "text")
_SECTIONS = [name for name in StudySpec.model_fields if name not in _NOT_SECTIONS]
"""The other top-level keys."""

_DRAFTED = ("study", "task", "settings", "budget", "search", "resources", "enqueue")
"""The sections that a `Draft` has."""
IMPORTED = "imported"
"""The key of the origin of imported runs, in the text that stands for their study file."""

SEVERAL = {"sampler": "tpe", "pruner": "none"}  # the defaults of `search` with several objectives

_PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Annotated[Parameter, Field(discriminator="type")])


def load(path: Path, *, inspect: Inspect | None = None) -> StudySpec:
    """Read a study file; with `inspect`, also its task's data and code. Raises UserError if it
    cannot be read, and SpecError with all its mistakes."""
    text = text_of(path)
    return parse(text, base=path.resolve().parent, name=path.name, inspect=inspect)


def text_of(path: Path) -> str:
    """The text of a study file. Raises UserError if there is none, or it cannot be read."""
    return study_text.text_of(path, "study file", "write one with: hpsearch init")


def parse(
    text: str,
    *,
    base: Path,
    name: str = "study.yaml",
    inspect: Inspect | None = None,
    recorded: bool = False,
) -> StudySpec:
    """Read the text of a study file, whose relative paths start from `base`. Of one that a database
    holds (`recorded`), samplers and pruners are not checked again, and trackers of plugins that are
    gone are left out. Raises SpecError if the text has mistakes; the error lists them all."""
    source = yaml_source.read(text)
    problems = list(source.problems)
    sections: dict[str, Any] = {}
    if isinstance(source.value, dict):
        context = RECORDED if recorded else None
        sections, more = _sections(source.value, base, inspect, context)
        known = {problem.where for problem in problems}
        problems += [problem for problem in more if problem.where not in known]
    elif not problems and source.value is None:
        problems.append(Problem("", "is empty; write a study file with: hpsearch init"))
    elif not problems:
        what = f"must be a mapping that starts with study:, not {shown(source.value)}"
        problems.append(Problem("", what))
    if problems:
        raise SpecError(_lines(problems, source, name))
    return StudySpec(**sections, base=base, text=text)


def origin_of(study_file: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The origin of imported runs, by the plain values of their study file; None for any other."""
    origin = study_file.get(IMPORTED)
    return origin if isinstance(origin, dict) else None


def refusal(text: str, name: str, problems: list[Problem]) -> SpecError:
    """The error for problems that a task found after a study file, of this text, was read."""
    return SpecError(_lines(problems, yaml_source.read(text), name))


def _sections(
    value: dict[str, Any], base: Path, inspect: Inspect | None, context: Any
) -> tuple[dict[str, Any], list[Problem]]:
    """The parts of a study file that are right, by key, and the problems of the others."""
    given = _given(value)
    sections: dict[str, Any] = {}
    problems: list[Problem] = []
    known = [*_SECTIONS, *_BY_PARTS]
    for key in value:
        if key not in known:
            problems.append(Problem(key, f"unknown key; {nearest(key, known)}"))
    for key in _SECTIONS:
        section = {key: given[key]} if key in given else {}
        try:
            sections[key] = getattr(_alone(key).model_validate(section, context=context), key)
        except ValidationError as error:
            problems += problems_of(error)
    sections["requires"] = tuple(
        each.given(sections.get("settings", {})) for each in sections.get("requires", ())
    )
    objectives, wrong_objectives = _objectives(given.get("objective"))
    space, wrong_parameters = _space(given)
    if sections.get("task") is not None and sections.get("budget") is not None:
        sections["task"] = with_folds(sections["task"], sections["budget"].per_trial.folds)
    description, wrong_task = _task(sections.get("task"), base, inspect)
    names = given.get("space")
    draft = Draft(
        space=space,
        names=frozenset(names) if isinstance(names, dict) else frozenset(),
        metrics=_metrics(given.get("objective"), sections.get("constraints")),
        objectives=len(objectives),
        description=description,
        requires=sections["requires"],
        **{key: sections.get(key) for key in _DRAFTED},
    )
    problems += [*wrong_objectives, *wrong_parameters, *wrong_task, *checks.problems(draft)]
    return {**sections, "objectives": objectives, "space": space}, problems


def _given(value: dict[str, Any]) -> dict[str, Any]:
    """The sections that are not empty, with the defaults for several objectives."""
    given = {key: part for key, part in value.items() if part is not None}
    objective = given.get("objective")
    search = given.get("search", {})
    has_several = isinstance(objective, list) and len(objective) > 1
    if has_several and isinstance(search, dict):
        given["search"] = {**SEVERAL, **search}
    return given


@functools.cache
def _alone(name: str) -> type[Model]:
    field = StudySpec.model_fields[name]
    fields: dict[str, Any] = {name: (field.annotation, field)}
    return create_model(name, __base__=Model, **fields)


def _objectives(given: Any) -> tuple[tuple[Objective, ...], list[Problem]]:
    if given is None or given == []:
        example = "objective: {metric: accuracy, direction: maximize}"
        return (), [Problem("objective", f"is missing; add {example}")]
    found: list[Objective] = []
    problems: list[Problem] = []
    for where, part in _by_place(given):
        try:
            found.append(Objective.model_validate(part))
        except ValidationError as error:
            problems += problems_of(error, where)
    return tuple(found), problems


def _by_place(objectives: Any) -> list[tuple[str, Any]]:
    if isinstance(objectives, list):
        return [(f"objective[{i}]", part) for i, part in enumerate(objectives)]
    return [("objective", objectives)]


def _metrics(objectives: Any, constraints: Any) -> dict[str, str]:
    """The metrics by their places; those of wrong objectives, too."""
    metrics: dict[str, str] = {}
    for where, part in _by_place(objectives):
        metric = part.get("metric") if isinstance(part, dict) else None
        if isinstance(metric, str):
            metrics[f"{where}.metric"] = metric
    for name in constraints or {}:
        metrics[f"constraints.{name}"] = name
    return metrics


def _space(given: dict[str, Any]) -> tuple[dict[str, Parameter], list[Problem]]:
    task, space = given.get("task"), given.get("space")
    if space in (None, {}) and isinstance(task, dict) and is_open(task):
        return {}, []
    return space_in(space)


def space_in(given: Any) -> tuple[dict[str, Parameter], list[Problem]]:
    """The parameters that are right, and the problems of the others."""
    if given is None or given == {}:
        example = "{learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}}"
        return {}, [Problem("space", f"has no parameters; add space: {example}")]
    if not isinstance(given, dict):
        what = f"must be a mapping of names to parameters, not {shown(given)}"
        return {}, [Problem("space", what)]
    space: dict[str, Parameter] = {}
    problems: list[Problem] = []
    for name, parameter in given.items():
        try:
            space[name] = _PARAMETER.validate_python(parameter)
        except ValidationError as error:
            problems += problems_of(error, f"space.{name}", skip=1)
    return space, problems


def _lines(problems: list[Problem], source: Source, name: str) -> list[str]:
    lines = []
    for problem in dict.fromkeys(problems):
        where = f"{problem.where}: " if problem.where else ""
        lines.append((source.line_of(problem.where), f"{where}{problem.what}"))
    by_line = sorted(lines, key=lambda each: each[0])
    return [f"{name}:{line}: {what}" for line, what in by_line]


def _task(
    task: dict[str, Any] | None, base: Path, inspect: Inspect | None
) -> tuple[TaskDescription | None, list[Problem]]:
    if task is None:
        return None, []
    try:
        description = describe(task.get("kind")).of_part(task)
    except TaskError as error:
        return None, error.problems
    found = description.problems_with(task)
    return description, found if found or inspect is None else inspect(task, base)


def advice(spec: StudySpec, further: int = 0, begun: int = 0) -> list[str]:
    """Notes on a study file, a text each, with a remedy where there is one. `further`
    configurations are tried beside those of the file, and `begun` trials have drawn theirs."""
    return [*_values(spec), *_notes(spec), *_enqueued(spec, further, begun)]


_FREE = re.compile(r"space\.[^.]+\.choices\b|task\.(?:args|config)\.|settings\.|enqueue\[")
"""The places of values that are the user's own, and may be of any kind."""
_MOST_VALUES = 5


def _values(spec: StudySpec) -> Iterator[str]:
    """Values that YAML may read in another way than they are meant, unless a setting takes them."""
    source = yaml_source.read(spec.text)
    known = describe(spec.task["kind"]).settings or {}
    found = [
        f"line {source.line_of(where)}: {where}: {remark}"
        for where, remark in source.remarks.items()
        if _FREE.match(where) and where.removeprefix("settings.") not in known
    ]
    yield from found[:_MOST_VALUES]
    if len(found) > _MOST_VALUES:
        yield f"{len(found) - _MOST_VALUES} more values without quotes may be read so"


def _dashes(spec: StudySpec) -> Iterator[str]:
    if spec.task.get("kind") != COMMAND.kind:
        return
    line = line_of(spec.task)
    values: dict[str, Sequence[Any]] = {name: [value] for name, value in spec.settings.items()}
    for name, parameter in spec.space.items():
        values[name] = parameter.choices if isinstance(parameter, CategoricalParameter) else ()
    for name, some in values.items():
        dashed = [value for value in some if isinstance(value, str) and value.startswith("-")]
        flag = line.flag_before(name)
        if dashed and flag is not None:
            yield (
                f"task.run: many programs take {shown(dashed[0])} after {flag} for another flag; "
                f"write {flag}={{{name}}}"
            )


def _enqueued(spec: StudySpec, further: int, begun: int) -> Iterator[str]:
    given, trials = len(spec.enqueue) + further, spec.budget.trials
    first = spaces.defaults(spec.space, describe(spec.task["kind"]).settings, spec.requires)
    others = begun + (first is not None)
    most = given + others
    if not given or trials is None or most < trials + (begun > 0):
        return
    beside = "" if first is None else " after the defaults"
    beside += f" beside {begun} other trials" if begun else ""
    what = f"enqueue: {given} configurations{beside}, and budget.trials is {trials}"
    if most == trials:
        yield f"{what}: nothing is left to search"
    else:
        yield f"{what}: the last {most - trials} are not tried; raise budget.trials to {most}"


def _notes(spec: StudySpec) -> Iterator[str]:
    yield from _dashes(spec)
    pruner = spec.search.pruner.kind
    if pruner in ("median", "percentile"):
        yield (
            f"search.pruner: {pruner} compares with finished trials only: trials that run before, "
            "such as the first one of every worker, are never pruned; "
            f"{PROMOTION} compares from the first rung on"
        )
    if is_open(spec.task) and pruner == PROMOTION and len(spec.objectives) == 1:
        yield (
            "search.pruner: an objective has no checkpoints, so a paused trial that continues "
            "trains from the beginning, and is charged for it; to only end trials: pruner: "
            "successive_halving"
        )
