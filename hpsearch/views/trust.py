"""How far the rungs of a study can be trusted, in words."""

from __future__ import annotations

from hpsearch.ranking.trust import Basis, Correlation, RungTrust, RungVerdict, WronglyPaused
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.study_file.models import StudySpec
from hpsearch.views.numbers import count, number

_SAID = {
    RungVerdict.TELLS: "the standing foretells the end",
    RungVerdict.UNCLEAR: "unclear how well the standing foretells the end",
    RungVerdict.LITTLE: "the standing says little about the end",
}

MEASURE = "search.spare measures it in a new study"


def lines(of: StudyTrust) -> list[str]:
    """A line for each rung."""
    if of.spec is None:
        return []
    return [line(rung, of.spec) for rung in of.rungs]


def line(rung: RungTrust, spec: StudySpec) -> str:
    """What is known of a rung: the correlation, and how many trials were wrongly paused."""
    where = _place(rung, spec)
    correlation = rung.correlation
    if correlation is None:
        return f"{where}: too few trials in full to tell ({rung.finished})"
    parts = [f"{where}: {_SAID[rung.verdict]}, rank correlation {_correlation(correlation)}"]
    if rung.wrongly_paused is not None:
        parts.append(_wrongly_paused(rung.wrongly_paused))
    return "; ".join(parts)


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
        return f"it is not known whether the rungs can be trusted: {too_few}; {MEASURE}"
    found = f"rank correlation {_correlation(correlation)} at {_place(rung, spec)}"
    if rung.verdict is RungVerdict.UNCLEAR:
        return f"it is not clear how well the rungs foretold the end: {found}; {MEASURE}"
    longer = "a higher first_rung, or pruner: none, trains trials further before they pause"
    return f"the rungs of this study told little about the end: {found}; {longer}"


def _place(rung: RungTrust, spec: StudySpec) -> str:
    per_trial = spec.budget.per_trial
    return f"{number(rung.level)} of {number(per_trial.total)} {per_trial.unit.value}"


def _correlation(of: Correlation) -> str:
    """``0.62 (0.1 to 0.88; 9 trials)``"""
    kind = "spared trial" if of.spared else "trial"
    return f"{of.value:.2f} ({of.low:.2f} to {of.high:.2f}; {count(of.trials, kind)})"


def _wrongly_paused(of: WronglyPaused) -> str:
    """``3% of the paused would have won (0% to 30%; estimated)``"""
    basis = "estimated"
    if of.basis is Basis.SPARED:
        basis = f"from {count(of.trials, 'spared trial')}"
    span = f"{_percent(of.low)} to {_percent(of.high)}"
    return f"{_percent(of.share)} of the paused would have beaten the best ({span}; {basis})"


def _percent(share: float) -> str:
    """A share in per cent; a tiny one is not called zero."""
    if 0 < share < 0.005:
        return "under 1%"
    return f"{share:.0%}"
