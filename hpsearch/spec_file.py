"""From a study file to a `StudySpec`, or to every mistake in it with its line and remedy.

Parts are checked one by one, so that a mistake in one does not hide those in another; then the parts are checked
against each other and against the task; then, if asked, the data is looked at.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, create_model

from hpsearch import spec_checks, yaml_source
from hpsearch.errors import SpecError, UserError
from hpsearch.spec import (
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    Model,
    Objective,
    Parameter,
    Search,
    StudyBudget,
    StudySpec,
)
from hpsearch.spec_checks import Draft
from hpsearch.spec_texts import problems_of
from hpsearch.spec_types import shown
from hpsearch.yaml_source import Source
from trials import files, tasks
from trials.contract import Problem, TaskError
from trials.settings import nearest
from trials.tasks.description import TaskDescription

_SECTIONS = [name for name in StudySpec.model_fields if name not in ("objectives", "space", "base", "text")]
"""The top-level keys of a study file, but for those whose parts are checked one by one."""

_BY_PARTS = ("objective", "space")

SEVERAL = {"sampler": "tpe", "pruner": "none"}
"""How studies with several objectives search where they do not say: the usual defaults compare one value."""

MOST_BYTES = 10_000_000
"""Of a study file: a hundred times what anybody writes."""

_PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Annotated[Parameter, Field(discriminator="type")])
_PARAMETER_MODELS: dict[Any, type[Model]] = {
    "float": FloatParameter,
    "int": IntParameter,
    "categorical": CategoricalParameter,
}


def load(path: Path, *, inspect_data: bool = True) -> StudySpec:
    """Read a study file.

    Args:
        path: The file.
        inspect_data: Whether to look at the data the task names, too.

    Raises:
        UserError: There is no such file, or it cannot be read.
        SpecError: The file has mistakes: all of them.
    """
    try:
        files.refuse_odd(path)
        if (size := path.stat().st_size) > MOST_BYTES:
            raise UserError(f"{path} has {size} bytes, {MOST_BYTES} is the most", "is it the study file?")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such study file", "write one with: hpsearch init") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SpecError([f"{path.name}:{line}: is not UTF-8 text ({error.reason}); save it as UTF-8"]) from None
    except ValueError as error:
        raise UserError(f"{path} {error}", "a study file is a text file, such as study.yaml") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", "check the path and its permissions") from None
    return parse(text, base=path.resolve().parent, name=path.name, inspect_data=inspect_data)


def parse(text: str, *, base: Path, name: str = "study.yaml", inspect_data: bool = False) -> StudySpec:
    """Read the text of a study file.

    Args:
        text: YAML.
        base: The folder that relative paths in it start from.
        name: What to call the file in errors.
        inspect_data: Whether to look at the data the task names, too.

    Raises:
        SpecError: The text has mistakes: all of them.
    """
    source = yaml_source.read(text)
    problems = list(source.problems)
    sections: dict[str, Any] = {}
    if not problems and source.value is None:
        problems.append(Problem("", "is empty; write a study file with: hpsearch init"))
    elif isinstance(source.value, dict):
        sections, more = _sections(source.value, base, inspect_data=inspect_data)
        settled = {problem.where for problem in problems}
        problems += [problem for problem in more if problem.where not in settled]
    elif not problems:
        problems.append(Problem("", f"must be a mapping that starts with study:, not {shown(source.value)}"))
    if problems:
        raise SpecError(_lines(problems, source, name))
    return StudySpec(**sections, base=base, text=text)


def refusal(text: str, name: str, problems: list[Problem]) -> SpecError:
    """The error for problems that were found after a study file was read.

    Args:
        text: The file's text, to find lines in.
        name: What to call the file.
        problems: What a task said about its part.
    """
    return SpecError(_lines(problems, yaml_source.read(text), name))


def _sections(value: dict[str, Any], base: Path, *, inspect_data: bool) -> tuple[dict[str, Any], list[Problem]]:
    """The parts of a study file that are right, by key, and the problems of the others."""
    written = {key: part for key, part in value.items() if part is not None}  # `settings:` with nothing in it is absent
    if isinstance(written.get("objective"), list) and len(written["objective"]) > 1:
        search = written.get("search", {})
        written["search"] = {**SEVERAL, **search} if isinstance(search, dict) else search
    sections: dict[str, Any] = {}
    problems = [
        Problem(key, f"unknown key; {nearest(key, [*_SECTIONS, *_BY_PARTS])}")
        for key in value
        if key not in _SECTIONS and key not in _BY_PARTS
    ]
    for key in _SECTIONS:
        try:
            sections[key] = _part(StudySpec, key, written)
        except ValidationError as error:
            problems += problems_of(error, _alone(StudySpec, key))
    sections["objectives"], wrong = _objectives(written.get("objective"))
    sections["space"], more = _space(written.get("space"))
    description, task_problems = _task(sections.get("task"), base, inspect_data=inspect_data)
    draft = _draft(written, sections, description)
    return sections, [*problems, *wrong, *more, *task_problems, *spec_checks.problems(draft)]


def _draft(written: dict[str, Any], sections: dict[str, Any], description: TaskDescription | None) -> Draft:
    """The parts that are checked against each other, each one read alone from its section."""
    space = written.get("space")
    return Draft(
        settings=sections.get("settings"),
        space=sections["space"],
        names=frozenset(space) if isinstance(space, dict) else frozenset(),
        metrics=_metrics(written.get("objective"), sections.get("constraints")),
        objectives=len(sections["objectives"]),
        per_trial=_part_or_none(StudyBudget, "per_trial", written.get("budget")),
        sampler=_part_or_none(Search, "sampler", written.get("search")),
        pruner=_part_or_none(Search, "pruner", written.get("search")),
        confirm=_part_or_none(Search, "confirm", written.get("search")),
        enqueue=sections.get("enqueue"),
        description=description,
    )


@functools.cache
def _alone(model: type[Model], name: str) -> type[Model]:
    """One field of a model as a model of its own."""
    field = model.model_fields[name]
    return create_model(name, __base__=Model, **{name: (field.annotation, field)})  # type: ignore[call-overload, no-any-return]


def _part(model: type[Model], name: str, section: dict[str, Any]) -> Any:
    """One field of a section, checked without the section's others; its default where it is not written."""
    alone = _alone(model, name).model_validate({name: section[name]} if name in section else {})
    return getattr(alone, name)


def _part_or_none(model: type[Model], name: str, section: Any) -> Any:
    try:
        return _part(model, name, section) if isinstance(section, dict) else None
    except ValidationError:
        return None  # it is reported with its section


def _objectives(written: Any) -> tuple[tuple[Objective, ...], list[Problem]]:
    """The objectives that are right, one or a list of them in the file, and the problems of the others."""
    if written is None or written == []:
        return (), [Problem("objective", "is missing; add objective: {metric: accuracy, direction: maximize}")]
    found: list[Objective] = []
    problems: list[Problem] = []
    for where, part in _by_place(written):
        try:
            found.append(Objective.model_validate(part))
        except ValidationError as error:
            problems += problems_of(error, Objective, where)
    return tuple(found), problems


def _by_place(objectives: Any) -> list[tuple[str, Any]]:
    """One objective, or each of a list of them, with its place in the file."""
    if isinstance(objectives, list):
        return [(f"objective[{i}]", part) for i, part in enumerate(objectives)]
    return [("objective", objectives)]


def _metrics(objectives: Any, constraints: Any) -> dict[str, str]:
    """The metrics that are named, by place."""
    named = {f"{where}.metric": _part_or_none(Objective, "metric", part) for where, part in _by_place(objectives)}
    limited = {f"constraints.{name}": name for name in constraints or {}}
    return {where: metric for where, metric in {**named, **limited}.items() if metric is not None}


def _space(written: Any) -> tuple[dict[str, Parameter], list[Problem]]:
    """The parameters that are right, and the problems of the others."""
    if written is None or written == {}:
        example = "{learning_rate: {type: float, low: 1.0e-5, high: 1.0e-3, log: true}}"
        return {}, [Problem("space", f"names nothing to search; add space: {example}")]
    if not isinstance(written, dict):
        return {}, [Problem("space", f"must be a mapping of names to parameters, not {shown(written)}")]
    space: dict[str, Parameter] = {}
    problems: list[Problem] = []
    for name, parameter in written.items():
        try:
            space[name] = _PARAMETER.validate_python(parameter)
        except ValidationError as error:
            kind = parameter.get("type") if isinstance(parameter, dict) else None
            model = _PARAMETER_MODELS.get(kind) if isinstance(kind, str) else None
            problems += problems_of(error, model, f"space.{name}", skip=1 if model else 0)
    return space, problems


def _lines(problems: list[Problem], source: Source, name: str) -> list[str]:
    """Problems as finished lines, in the order of the file, each once."""
    placed = {(source.line_of(problem.where), problem.where, problem.what): None for problem in problems}
    return [
        f"{name}:{line}: {where}: {what}" if where else f"{name}:{line}: {what}"
        for line, where, what in sorted(placed, key=lambda entry: entry[0])
    ]


def _task(
    task: dict[str, Any] | None, base: Path, *, inspect_data: bool
) -> tuple[TaskDescription | None, list[Problem]]:
    """What the task knows about itself, and what is wrong with how it is described."""
    if task is None:
        return None, []
    try:
        description = tasks.describe(task.get("kind"))
    except TaskError as error:
        return None, error.problems
    return description, tasks.inspect(task, base) if inspect_data else description.problems_with(task)
