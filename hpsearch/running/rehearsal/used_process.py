"""The trial that was tried, once more in a process that has trained another one: what that has left
in the variables of modules must not change its reports."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.domain.numbers import number
from hpsearch.running.executors.first_report import Tried
from hpsearch.study_file.models import StudySpec
from trials.descriptions.builtin import stays_warm

REMEDY = (
    "set in the function what it keeps in variables of modules, or write under task: warm: false"
)
Start = Callable[..., tuple[Tried, list[bytes]]]  # `first_trial.start` of a study on a device


def keeps_its_process(task: Mapping[str, Any]) -> bool:
    """True if the process of a task's code trains one trial after another."""
    return ":" in task["kind"] and stays_warm(task)


def remarks_on_process(
    start: Start, spec: StudySpec, params: Mapping[str, Any], other: Mapping[str, Any], first: Tried
) -> Iterator[str]:
    """A sentence if the `first` trial reports something else after one with `other` parameters in
    its process, or if chance hides that."""
    at, metrics = next(iter(first.reports.items()))
    used, _ = start(params, before=other)
    if isinstance(used.news, ev.Failed):
        what = f"after another trial in the same process, it fails: {used.news.text}"
        yield f"task.kind: {what}; {REMEDY}"
    changed = _differing(metrics, used.reports.get(at, metrics))
    if not changed:
        return
    again, _ = start(params)
    noisy = _differing(metrics, again.reports.get(at, metrics))
    left = [name for name in changed if name not in noisy]
    if left:
        now = used.reports[at]
        shown = ", ".join(
            f"{name} {number(now[name])} instead of {number(metrics[name])}"
            for name in left
            if name in now and name in metrics
        )
        what = "after another trial in the same process, the same trial reports"
        yield f"task.kind: {what} {shown or 'other metrics'}; {REMEDY}"
    elif any(objective.metric in noisy for objective in spec.objectives):
        what = f"the same trial reports another {', '.join(noisy)} in each new process"
        yield (
            f"task.kind: {what}, so that it is not known whether one trial changes the next; "
            "derive all that is random from trial.seed"
        )


def _differing(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    names = dict.fromkeys([*one, *other])
    return [name for name in names if repr(one.get(name)) != repr(other.get(name))]
