"""A study file from a study in a storage of Optuna's: its recorded distributions are data."""

from __future__ import annotations

from optuna.trial import FrozenTrial

from hpsearch.bridges.draft import USUAL_TRIALS, StudyDraft
from hpsearch.bridges.imported_study import parameter_of
from hpsearch.bridges.optuna.read import objectives_of, opened_study, ours
from hpsearch.bridges.optuna.write import SOURCE

OWN = "is left to the objective, which draws it itself"


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a study of Optuna's, which needs no name if it is the only one there.
    Raises UserError if there is no such storage or study."""
    found, _ = opened_study(source, study)
    draft = StudyDraft(f"the study {found.study_name} of Optuna", found.study_name)
    draft.remarks.append("name the module and the function of your objective")
    names, directions = objectives_of(found)
    pairs = zip(names, directions, strict=True)
    objectives = [{"metric": name, "direction": direction} for name, direction in pairs]
    trials = found.get_trials(deepcopy=False)
    is_copy = SOURCE in found.user_attrs
    _add_space(draft, [trial for trial in trials if trial.distributions], is_copy=is_copy)
    steps = [step for trial in trials for step in trial.intermediate_values]
    length = max(steps, default=1) + (0 in steps)
    draft.sections = {
        "task": {"kind": "my_module:objective", "library": "optuna"},
        "objective": objectives[0] if len(objectives) == 1 else objectives,
        "budget": {"trials": len(trials) or USUAL_TRIALS, "per_trial": {"steps": max(length, 1)}},
    }
    return draft


def _add_space(draft: StudyDraft, trials: list[FrozenTrial], *, is_copy: bool) -> None:
    names = dict.fromkeys(name for trial in trials for name in trial.distributions)
    for name in names:
        drawn = [trial.distributions[name] for trial in trials if name in trial.distributions]
        if len(drawn) < len(trials):
            what = f"{name} {OWN}: {len(drawn)} of {len(trials)} trials have it"
            draft.remarks.append(what)
        elif any(each != drawn[0] for each in drawn):
            draft.remarks.append(f"{name} {OWN}: its range differs between trials")
        else:
            draft.add(name, parameter_of(ours(drawn[0], is_copy=is_copy)))
