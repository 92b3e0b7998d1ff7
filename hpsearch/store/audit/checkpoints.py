"""A check that each checkpoint that a database names is there, and whole where a trial is to
continue from it. It reads each file of each checkpoint, and compares it with its manifest."""

from collections.abc import Iterator

from hpsearch.domain.records import Trial
from hpsearch.errors import Damaged
from hpsearch.store.audit.invariants import Violation
from hpsearch.store.store import Store
from trials.checkpoints.manifests import check


def unusable(store: Store, name: str | None = None) -> list[Violation]:
    """The trials of one study, or of all, with a checkpoint that is missing, damaged or out of
    reach. Nothing is locked: if a trial names newer ones by then, those are checked."""
    found: list[Violation] = []
    for each in [name] if name else store.study_names():
        try:
            for trial in store.load(each).trials:
                found += _unusable_of(store, each, trial)
        except Damaged:
            continue  # other checks find it
    return found


def _unusable_of(store: Store, study: str, trial: Trial) -> Iterator[Violation]:
    problem = _problem(trial)
    if problem is not None and not trial.state.terminal:
        now = store.load(study).trials[trial.number]
        problem = _problem(now)
    if problem is not None:
        yield Violation(study, trial.number, f"its checkpoint cannot be used: {problem}")


def _problem(trial: Trial) -> str | None:
    if trial.was_asked:
        return None  # nothing is known of what its user saved
    goes_on = not trial.state.terminal or trial.left_as is not None
    checkpoint = trial.checkpoint
    best = trial.best_checkpoint
    try:
        if checkpoint is not None:
            check(checkpoint, whole=goes_on)
        if best is not None and best != checkpoint:
            check(best)
    except Exception as error:  # noqa: BLE001 - each store has errors of its own
        return str(error) or type(error).__name__
    return None
