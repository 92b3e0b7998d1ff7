"""How many trials of a study ended by themselves before their budget, or went on beyond it."""

from dataclasses import dataclass

from sqlalchemy import Connection, false, func, or_, select, true

from hpsearch.domain.lifecycle import State
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.schema import TRIAL
from hpsearch.study_file.space import is_open
from trials.contract import TRAINED_TO


@dataclass(frozen=True, slots=True)
class OwnEnds:
    """The complete trials of a study that did not end at their budget."""

    total: float  # the budget of a trial, in `unit`
    unit: str
    early: list[float]  # the resources at which some ended by themselves before it, ascending
    beyond: int  # how many others went on beyond it
    complete: int  # the number of complete trials


def own_ends(connection: Connection, study: StudyHead) -> OwnEnds | None:
    """The complete trials that ended elsewhere than at their budget; None if there are none."""
    budget, task = study.budget, study.content.get("task")
    if budget is None:
        return None
    total = budget.per_trial.total
    returns = true() if isinstance(task, dict) and is_open(task) else false()
    elsewhere = or_(TRIAL.resource < total, TRIAL.findings.is_not(None), returns)
    of_state = TRIAL.study_id == study.id, TRIAL.state == State.COMPLETE.value
    wanted = select(TRIAL.resource, TRIAL.system_attrs, TRIAL.findings)
    early, beyond = [], 0
    for row in connection.execute(wanted.where(*of_state, elsewhere)):
        end = (row.system_attrs or {}).get(TRAINED_TO, row.resource)
        if end < total:
            early.append(end)
        beyond += any(finding.name == "beyond_budget" for finding in row.findings or ())
    if not early and not beyond:
        return None
    complete = connection.scalar(select(func.count()).where(*of_state)) or 0
    return OwnEnds(total, budget.per_trial.unit.value, sorted(early), beyond, complete)
