"""The parts of a study file that one training uses."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trials.contract import Goal, Problem, TaskError
from trials.data.files import text_of
from trials.descriptions import yaml_source
from trials.settings import nearest

USED = ("task", "settings", "budget", "seed", "objective", "arithmetic", "base")
IGNORED = ("study", "space", "constraints", "search", "resources")
DIRECTIONS = ("minimize", "maximize")


def read(file: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Read a study file. Raises TaskError if it cannot be read, or a part is missing, unknown or of
    the wrong shape."""
    try:
        source = yaml_source.read(text_of(file))
    except OSError as error:
        what = f"cannot be read: {error.strerror}; check the path"
        raise TaskError.at("file", what) from None
    except ValueError as error:
        raise TaskError.at("file", f"cannot be read: {error}") from None
    study = source.value
    if source.problems:
        lines = [f"line {source.line_of(each.where)}" for each in source.problems]
        texts = [each.what for each in source.problems]
        raise TaskError(list(map(Problem, lines, texts)))
    if not isinstance(study, dict):
        raise TaskError.at("file", "must be a mapping with task, settings, budget and seed")
    problems = _problems_with(study)
    if problems:
        raise TaskError(problems)
    ignored = [key for key in IGNORED if key in study]
    if ignored:
        say(f"note: a single training ignores {', '.join(ignored)}")
    return study


def _problems_with(study: Mapping[Any, Any]) -> list[Problem]:
    problems = []
    known = (*USED, *IGNORED)
    for key in study:
        if key not in known:
            what = f"is not a part of a study file; {nearest(key, known)}"
            problems.append(Problem(str(key), what))
    if not isinstance(study.get("task"), dict):
        problems.append(Problem("task", "must be a mapping; say what to train"))
    if not isinstance(study.get("base", ""), str):
        problems.append(Problem("base", "must be the folder of the task's modules"))
    settings = study.get("settings") or {}
    if not isinstance(settings, dict):
        problems.append(Problem("settings", "must be a mapping of settings to values"))
    budget = study.get("budget")
    if not isinstance(budget, dict) or not isinstance(budget.get("per_trial"), dict):
        what = "must say how far to train, such as {epochs: 3}"
        problems.append(Problem("budget.per_trial", what))
    seed = study.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        problems.append(Problem("seed", f"must be a whole number of at least 0, not {seed!r}"))
    return problems


def goal_of(objective: Any) -> Goal | None:
    """The first objective of a study file; None if the file has no objective. Raises TaskError if
    it has no metric or no direction."""
    if not objective:
        return None
    if isinstance(objective, list):
        where, first = "objective[0]", objective[0]
    else:
        where, first = "objective", objective
    stated = first if isinstance(first, dict) else {}
    metric, direction = stated.get("metric"), stated.get("direction")
    if not isinstance(metric, str) or direction not in DIRECTIONS:
        example = "{metric: accuracy, direction: maximize}"
        what = f"must have a metric and a direction (minimize or maximize), such as {example}"
        raise TaskError.at(where, what)
    return Goal(metric, maximize=direction == "maximize")
