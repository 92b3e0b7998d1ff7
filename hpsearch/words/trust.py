"""How far the rungs of a study can be trusted, in words."""

from __future__ import annotations

from hpsearch.ranking.trust import Correlation, RungTrust, RungVerdict
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.study_file.models import StudySpec
from hpsearch.words.numbers import count, number

_SAID = {
    RungVerdict.TELLS: "the standing foretells the end",
    RungVerdict.UNCLEAR: "unclear how well the standing foretells the end",
    RungVerdict.LITTLE: "the standing says little about the end",
}


def line(of: StudyTrust) -> str | None:
    """What is known of the weakest rung; None if no trial has paused at any."""
    rung, spec = of.weakest, of.spec
    if rung is None or spec is None:
        return None
    where = f"weakest at {_place(rung, spec)}"
    if rung.correlation is None:
        return f"{where}: too few trials in full to tell ({rung.finished})"
    return f"{where}: {_SAID[rung.verdict]}, rank correlation {_correlation(rung.correlation)}"


def caveat(of: StudyTrust, *, in_full: bool = True) -> str | None:
    """What to know before the best trial of a study is relied on; None if its rungs can be trusted,
    or paused no trial.

    Args:
        of: How far its rungs can be trusted.
        in_full: Whether to say also that nothing is known of them.
    """
    rung, spec = of.weakest, of.spec
    if rung is None or spec is None or rung.verdict is RungVerdict.TELLS:
        return None
    correlation = rung.correlation
    if correlation is None:
        if not in_full:
            return None
        too_few = f"only {count(rung.finished, 'trial')} in full"
        return f"it is not known whether the rungs can be trusted: {too_few}"
    found = f"rank correlation {_correlation(correlation)} at {_place(rung, spec)}"
    longer = "a higher first_rung, or pruner: none, trains trials further before they pause"
    if rung.verdict is RungVerdict.UNCLEAR:
        return f"it is not clear how well the rungs foretold the end: {found}; {longer}"
    return f"the rungs of this study told little about the end: {found}; {longer}"


def _place(rung: RungTrust, spec: StudySpec) -> str:
    per_trial = spec.budget.per_trial
    return f"{number(rung.level)} of {number(per_trial.total)} {per_trial.unit.value}"


def _correlation(of: Correlation) -> str:
    """``0.62 (0.1 to 0.88; 9 trials)``"""
    return f"{of.value:.2f} ({of.low:.2f} to {of.high:.2f}; {count(of.trials, 'trial')})"
