"""The brain of a study, joined with its search."""

from hpsearch.brain.reopening import reopen
from hpsearch.brain.study import Study
from hpsearch.domain.history import History
from hpsearch.search.searcher import Searcher
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.study_file import methods, space
from hpsearch.study_file.models import StudySpec
from trials.descriptions.builtin import describe


def build_study(history: History, spec: StudySpec, *, failed_too: bool = True) -> Study:
    """The brain of a study over its history, which is reopened, with Optuna reading that same
    history. Raises UserError if a plugin that offers its sampler or pruner is not installed any
    more."""
    methods.refuse_unusable(spec.search.sampler, spec.search.pruner)
    reopen(history, failed_too=failed_too)
    storage = HistoryStorage(history)
    known = describe(spec.task["kind"]).settings
    defaults = space.defaults(spec.space, known, spec.requires)
    return Study(spec, history, Searcher(spec, history, storage), defaults)
