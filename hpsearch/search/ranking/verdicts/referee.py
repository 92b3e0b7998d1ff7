"""Whether changed code is better, by runs in pairs with the code that it changes.

A change is kept when its e-value reaches 1 / alpha_t. By e-LOND (Xu and Ramdas, "Online multiple
testing with e-values", 2024), change t has alpha_t = `LEVEL` g_t (k + 1), where k is the number of
those kept so far, and the g sum to 1: of all that a campaign keeps, at most a share of `LEVEL` is
expected to be no better, whatever the changes have to do with one another, and however many come.
Each e-value may be looked at after every pair (`evidence`).

A change is discarded once not even a standard error more of its mean would let it be kept within
`MOST` pairs: that errs on the side of too few kept.

A pair is two runs on one fresh seed, of the base with the change and of the base: the commit that
a change was made on, and what was kept on it before. Both have the parameters of the best trial
that was complete as it was asked for. No run serves two changes: who proposes a change may have
seen what luck the base had. A run has the role `revision`.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from hpsearch.domain.facts import CodeVerdict
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import number
from hpsearch.domain.records import Revision, RevisionRun, Trial, sign_of
from hpsearch.search.ranking.metric_bounds import bounds_of
from hpsearch.search.ranking.repeats import mean_of
from hpsearch.search.ranking.verdicts.evidence import e_value, lower_bound, needed

LEVEL = 0.05
FEWEST = 3  # pairs before anything is decided
MOST = 40
SUM = 2.10974  # of 1 / (n log² n) over n from 2


@dataclass(frozen=True)
class Ruling:
    """What pairs of runs say of a change.

    Attributes:
        evidence: The e-value.
    """

    verdict: CodeVerdict
    why: str
    evidence: float = 1.0


def level_of(number: int, kept: int) -> float:
    """The alpha of a change by its number, from 1, and how many were kept before it."""
    return LEVEL * (kept + 1) / (SUM * (number + 1) * math.log(number + 1) ** 2)


def ruling(
    changed: Sequence[float],
    base: Sequence[float],
    sign: float,
    level: float,
    best: float = -math.inf,
) -> Ruling:
    """The ruling on a change by the values of both sides, pair by pair. `sign` makes less better,
    `level` is its alpha, and `best` the best value that there can be, where less is better."""
    gains = [sign * (before - now) for before, now in zip(base, changed, strict=True)]
    pairs = len(gains)
    if pairs < FEWEST:
        return Ruling(CodeVerdict.OPEN, f"{pairs} of at least {FEWEST} pairs")
    if not any(gains):
        return Ruling(CodeVerdict.DISCARD, f"it changes nothing: all {pairs} pairs are equal")
    different = len(set(changed))
    if 2 * different < len(set(base)) and min(sign * each for each in changed) > best:
        values = "equal values" if different == 1 else f"{different} values"
        return Ruling(CodeVerdict.DISCARD, f"it ignores its seed: {pairs} seeds give {values}")
    evidence = e_value(gains)
    if evidence >= 1 / level:
        least = number(lower_bound(gains, 1 - level))
        what = f"better by {number(mean_of(gains))} (at least {least}) over {pairs} pairs"
        return Ruling(CodeVerdict.KEEP, what, evidence)
    error = stdev(gains) / math.sqrt(pairs)
    hoped = needed([gain + error for gain in gains], 1 - level)
    if hoped is None or pairs + hoped > MOST:
        what = f"not shown to be better: {number(mean_of(gains))} over {pairs} pairs"
        return Ruling(CodeVerdict.DISCARD, what, evidence)
    more = needed(gains, 1 - level)
    about = "" if more is None else f"; about {more} more would decide"
    what = f"better by {number(mean_of(gains))} so far, over {pairs} pairs{about}"
    return Ruling(CodeVerdict.OPEN, what, evidence)


Runs = Mapping[tuple[int, bool], Trial]
"""The runs for one revision, by pair and whether they ran the change."""


class Referee:
    """Tests the changes of one study's code."""

    def __init__(self, history: History, metric: str) -> None:
        self._history, self._metric = history, metric
        self._seen = 0  # of the history's runs for revisions
        self._numbers: defaultdict[int, dict[tuple[int, bool], int]] = defaultdict(dict)
        """The numbers of the trials of each revision, as in `Runs`."""
        self._known: dict[int, tuple[int, int]] = {}
        """The complete pairs and the failed runs that each was last ruled on by."""

    def next(self, now: float) -> RevisionRun | None:
        """The run that is due, once all that can be decided is; None if nothing is, or what runs
        is waited for."""
        for revision in self._history.revisions:
            if revision.verdict is CodeVerdict.OPEN and not self._decide(revision, now):
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
        is_decided = ruled.verdict is not CodeVerdict.OPEN
        revision.decided = now if is_decided else None
        self._history.touch_revision(revision)
        return is_decided

    def _ruling(self, revision: Revision, runs: Runs, pairs: int) -> Ruling:
        for (_, is_changed), trial in runs.items():
            if trial.state is State.FAILED:
                which = "its run" if is_changed else "the run of its base"
                why = f"{which}, trial {trial.number}, failed: {trial.error_text}"
                return Ruling(CodeVerdict.DISCARD, why)
        changed = [_value(runs[pair, True]) for pair in range(pairs)]
        base = [_value(runs[pair, False]) for pair in range(pairs)]
        before = self._history.revisions[: revision.number - 1]
        kept = sum(each.verdict is CodeVerdict.KEEP for each in before)
        for pair in range(pairs):
            now, before_it = runs[pair, True], runs[pair, False]
            if now.violation > before_it.violation:
                why = f"its run, trial {now.number}, exceeds the study's limits"
                return Ruling(CodeVerdict.DISCARD, why)
        sign = sign_of(self._history.study.directions[0])
        best = min(sign * bound for bound in bounds_of(self._metric, [*changed, *base]))
        return ruling(changed, base, sign, level_of(revision.number, kept), best)

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
        for which in history.revision_runs[self._seen :]:
            run = history.trials[which].revision_run
            assert run is not None, "its role says so"
            self._numbers[run.revision][run.pair, run.is_changed] = which
        self._seen = len(history.revision_runs)
        numbers = self._numbers[revision.number]
        return {side: history.trials[which] for side, which in numbers.items()}


def _complete_pairs(runs: Runs) -> int:
    complete = {side for side, trial in runs.items() if trial.state is State.COMPLETE}
    pair = 0
    while {(pair, True), (pair, False)} <= complete:
        pair += 1
    return pair


def _value(trial: Trial) -> float:
    assert trial.value is not None, "a complete trial has a value"
    return trial.value
