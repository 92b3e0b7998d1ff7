"""What the parts of a study's brain share."""

from hpsearch.brain.attempts import Attempts, NodeHealth
from hpsearch.brain.budget.ledger import Spending
from hpsearch.brain.budget.next_hour import NextHours
from hpsearch.brain.progress import StudyProgress
from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain.history import History
from hpsearch.search.searcher import Searcher
from hpsearch.study_file.models import StudySpec


class Context:
    """One study, as all parts of its brain see and change it."""

    def __init__(self, spec: StudySpec, history: History, searcher: Searcher) -> None:
        self.spec = spec  # with the budget that it has by now
        self.history = history
        self.searcher = searcher
        self.spending = Spending(spec.budget, history)  # what is spent, reserved and left
        self.progress = StudyProgress(spec, history)  # its phase
        self.attempts = Attempts(spec, history, self.spending)  # with its slots
        self.nodes = NodeHealth(self.attempts)  # the failures of its nodes
        self.log = TrialLog(history)  # the records of its trials
        self.next_hours = NextHours(history, searcher, self.spending)

    def note_expectations(self) -> None:
        for trial, *expected in self.searcher.expectations():
            self.log.note_expected(trial, *expected)
        self.searcher.expectations_recorded()
