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
    """One study, as all parts of its brain see and change it.

    Attributes:
        spec: The study file, with the budget that it has by now.
        history: All its records.
        searcher: Its search, over the same history.
        spending: What is spent, reserved and left.
        progress: Its phase.
        attempts: Its slots, and what runs on them.
        nodes: The failures of its nodes.
        log: The records of its trials.
        next_hours: What another hour would bring.
    """

    def __init__(self, spec: StudySpec, history: History, searcher: Searcher) -> None:
        self.spec = spec
        self.history = history
        self.searcher = searcher
        self.spending = Spending(spec.budget, history)
        self.progress = StudyProgress(spec, history)
        self.attempts = Attempts(spec, history, self.spending)
        self.nodes = NodeHealth(self.attempts)
        self.log = TrialLog(history)
        self.next_hours = NextHours(history, searcher, self.spending)

    def note_expectations(self) -> None:
        for trial, *expected in self.searcher.expectations():
            self.log.note_expected(trial, *expected)
        self.searcher.expectations_recorded()
