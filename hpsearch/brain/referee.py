"""Changes of a command's code under test, one after another: the next run, and the verdict.

A pair is two runs on one fresh seed, of the base with the change and of the base: the commit that
a change was made on, and what was kept on it before. Both have the parameters of the best trial
that was complete as it was asked for. No run serves two changes: who proposes a change may have
seen what luck the base had. A run has the role `confirm` and repeats no trial.
"""

from collections import defaultdict
from collections.abc import Mapping

from hpsearch.domain.facts import Verdict
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Revision, RevisionRun, Trial, sign_of
from hpsearch.search.ranking.referee import FEWEST, Ruling, level_of, ruling

Runs = Mapping[tuple[int, bool], Trial]
"""The runs for one revision, by pair and whether they ran the change."""


class Referee:
    """Tests the changes of one study's code."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._seen = 0  # of the history's repeats
        self._numbers: defaultdict[int, dict[tuple[int, bool], int]] = defaultdict(dict)
        """The numbers of the trials of each revision, as in `Runs`."""
        self._known: dict[int, tuple[int, int]] = {}
        """The complete pairs and the failed runs that each was last ruled on by."""

    def next(self, now: float) -> RevisionRun | None:
        """The run that is due, once all that can be decided is; None if nothing is, or what runs
        is waited for."""
        for revision in self._history.revisions:
            if revision.verdict is Verdict.OPEN and not self._decide(revision, now):
                return self._due(revision)
        return None

    def _decide(self, revision: Revision, now: float) -> bool:
        runs = self._runs_of(revision)
        pairs = _complete_pairs(runs)
        known = pairs, sum(run.state is State.FAILED for run in runs.values())
        if self._known.get(revision.number) == known:
            return False
        self._known[revision.number] = known
        ruled = self._ruling(revision, runs, pairs)
        revision.verdict, revision.reason = ruled.verdict, ruled.why
        revision.evidence, revision.pairs = ruled.evidence, pairs
        is_decided = ruled.verdict is not Verdict.OPEN
        revision.decided = now if is_decided else None
        self._history.touch_revision(revision)
        return is_decided

    def _ruling(self, revision: Revision, runs: Runs, pairs: int) -> Ruling:
        for (_, is_changed), trial in runs.items():
            if trial.state is State.FAILED:
                which = "its run" if is_changed else "the run of its base"
                why = f"{which}, trial {trial.number}, failed: {trial.error_text}"
                return Ruling(Verdict.DISCARD, why)
        changed = [_value(runs[pair, True]) for pair in range(pairs)]
        base = [_value(runs[pair, False]) for pair in range(pairs)]
        before = self._history.revisions[: revision.number - 1]
        kept = sum(each.verdict is Verdict.KEEP for each in before)
        sign = sign_of(self._history.study.directions[0])
        return ruling(changed, base, sign, level_of(revision.number, kept))

    def _due(self, revision: Revision) -> RevisionRun | None:
        runs = self._runs_of(revision)
        complete = _complete_pairs(runs)
        for pair in range(complete, max(complete + 1, FEWEST)):
            for is_changed in (True, False):
                if (pair, is_changed) not in runs:
                    return RevisionRun(revision.number, pair, is_changed)
        return None

    def _runs_of(self, revision: Revision) -> Runs:
        history = self._history
        for number in history.repeats[self._seen :]:
            run = history.trials[number].revision_run
            if run is not None:
                self._numbers[run.revision][run.pair, run.is_changed] = number
        self._seen = len(history.repeats)
        numbers = self._numbers[revision.number]
        return {side: history.trials[number] for side, number in numbers.items()}


def _complete_pairs(runs: Runs) -> int:
    complete = {side for side, trial in runs.items() if trial.state is State.COMPLETE}
    pair = 0
    while {(pair, True), (pair, False)} <= complete:
        pair += 1
    return pair


def _value(trial: Trial) -> float:
    assert trial.value is not None, "a complete trial has a value"
    return trial.value
