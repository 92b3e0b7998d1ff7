"""A study that goes on in another space or with other limits: its trials find their place there.

A trial with values for all parameters, inside the new space, is evidence as before. A parameter
that is new has the value that the study file says the trials had (`was`), or that it had under
`settings`; one that is gone, the value that it is fixed to there. All other trials stay on record
as they are, and are neither ranked nor evidence. Those that wait end (`Study.begin`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain.history import History
from hpsearch.domain.records import CONSTRAINT, OUT_OF_SPACE, Trial
from hpsearch.errors import UserError
from hpsearch.search.curve_model.earlier import within
from hpsearch.search.curve_model.forecast import FITTED
from hpsearch.search.worth import Scoring
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec


def has_stated(spec: StudySpec, name: str) -> bool:
    """True if the study file says what trials count with that had no such parameter."""
    return "was" in spec.space[name].model_fields_set


def widen(history: History, before: StudySpec, after: StudySpec) -> int:
    """Give all trials their place in the study file `after`. Returns the number of those outside.
    The history has its new version already."""
    distributions, shared = space.distributions(after.space), dict[tuple[str, ...], Any]()
    log, outside = TrialLog(history), 0
    for trial in history.trials:
        if not trial.params:
            continue
        params = placed(trial.params, before, after)
        attrs = {name: each for name, each in trial.system_attrs.items() if name != OUT_OF_SPACE}
        if params is None:
            trial.system_attrs = {OUT_OF_SPACE: history.version, **trial.system_attrs}
            trial.left_as = None
            outside += 1
        else:
            key = tuple(params)
            known = {name: distributions[name] for name in key if name in distributions}
            trial.params, trial.system_attrs = params, attrs
            trial.distributions = shared.setdefault(key, {**_asked(trial, after), **known})
        if before.constraints != after.constraints:
            _value_again(log, trial, after)
        history.touch(trial)
    _forget_what_was_fitted(history, after)
    return outside


def refuse_unmeasured(history: History, spec: StudySpec) -> None:
    """Raise UserError if a trial with a value has not reported a metric that has limits."""
    for trial in history.trials:
        reports = trial.reports.values() if trial.value is not None else ()
        for metric in spec.constraints:
            if any(metric not in each.metrics for each in reports):
                what = f"trial {trial.number} of {history.study.name} has not reported {metric}"
                raise UserError(f"{what}, so no limit on it can be set now", "start a new study")


def placed(params: Mapping[str, Any], before: StudySpec, after: StudySpec) -> dict[str, Any] | None:
    """A configuration of the study file `before` as one of `after`; None if it is outside."""
    is_open = space.is_open(after.task)
    found = dict(params)
    for name in params.keys() - after.space.keys():
        if name in after.settings:
            if found.pop(name) != after.settings[name]:
                return None
        elif not is_open or name in before.space:
            return None
    for name in space.ordered(after.space):
        parameter = after.space[name]
        if name in found or not space.is_active(parameter, found):
            continue
        if has_stated(after, name):
            found[name] = parameter.was
        elif name in before.settings:
            found[name] = before.settings[name]
        else:
            return None
    if space.problems_with(after.space, found, is_open=is_open):
        return None
    found = space.as_written(after.space, found)
    return None if space.broken(after.requires, found) else found


def _asked(trial: Trial, spec: StudySpec) -> dict[str, Any]:
    """The distributions of the parameters that a trial has asked for."""
    names = trial.distributions.keys() & trial.params.keys() - spec.space.keys()
    return {name: trial.distributions[name] for name in names}


def _value_again(log: TrialLog, trial: Trial, spec: StudySpec) -> None:
    """Value a trial by the limits of a study file: by its best report that keeps them."""
    scoring = Scoring(spec)
    attrs = trial.system_attrs.items()
    trial.system_attrs = {name: each for name, each in attrs if not name.startswith(CONSTRAINT)}
    if trial.value is None:
        return
    trial.value = trial.values = None
    for resource in sorted(trial.reports):
        log.update_value(trial, scoring.worth_of(trial.reports[resource], trial))


def _forget_what_was_fitted(history: History, spec: StudySpec) -> None:
    """The model of curves has a length for each parameter, and its earlier studies are read as
    configurations of the space."""
    study = history.study
    study.system_attrs = {key: each for key, each in study.system_attrs.items() if key != FITTED}
    inside = []
    for earlier in study.warm_start:
        trials = [each for each in earlier.trials if within(spec.space, each.params)]
        if trials:
            inside.append(replace(earlier, trials=trials))
    study.warm_start = inside
    history.touch_study()
