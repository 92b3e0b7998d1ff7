"""Earlier studies as evidence: their good configurations, and their agreement with this study.

The evidence of an earlier study is fixed when the new one is created (`earlier_study_of`). Its
values are stretched as those of curves are, so that studies of different data and metrics can be
compared. In the model its rows are results at the full budget of another study, which count by that
study's *agreement* with this one (`model`): the mean of a few values, each weighed by how probable
it makes this study's own results. Several agreements are scaled once more together in the same way:
two studies that err alike are no more right than one.

Source: Swersky, Snoek and Adams, "Multi-Task Bayesian Optimization" (NeurIPS 2013), for one process
over several studies; Wistuba, Schilling and Schmidt-Thieme, "Sequential Model-Free Hyperparameter
Tuning" (ICDM 2015), for first configurations that together are good on every earlier study.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from hpsearch.domain.facts import EarlierStudy, EarlierTrial, Role
from hpsearch.domain.history import History
from hpsearch.domain.records import sign_of
from hpsearch.search.curve_model.curves import MOST_ROWS, Warp
from hpsearch.search.curve_model.encoding import Bools, Floats, Ints, SpaceEncoding
from hpsearch.search.curve_model.model import CurveModel, Evidence, Points, studies_of
from hpsearch.search.ranking.selection import counts, standing
from hpsearch.study_file.parameters import CategoricalParameter, Parameter
from hpsearch.study_file.space import Space, as_written
from hpsearch.study_file.types import is_number

MOST_TRIALS = 64  # the most trials of an earlier study that are evidence
FEWEST_TRIALS = 4  # the fewest results of a study that are evidence
DIGITS = 6  # digits of a standing
ROWS = MOST_ROWS // 3  # the most rows of evidence that are of earlier studies, all together
AGREEMENTS = np.array([0.0, 0.25, 0.5, 0.75])  # an agreement is a weighted mean of these values
FADING_FROM = 16
"""The number of a study's own results from which on each further one makes the others count less,
with fewer rows."""
OPENINGS = 3  # the number of first proposals that are configurations of earlier studies
LEADING = 8
"""The best configurations of each earlier study, which first proposals and candidates come from."""
CLOSE = 0.1  # the largest difference in any coordinate between two points that are close


# -------------------------------------------------------------------- the evidence that is recorded


def earlier_study_of(history: History, space: Space) -> EarlierStudy | None:
    """The evidence of a study with one objective for one that searches `space`; None if it has too
    few results there.

    A trial with a value outside this space does not count. One that failed because of its
    configuration has the worst standing. One that exceeds a limit is no better than the middle.
    """
    study = history.study
    sign = sign_of(study.directions[0])
    configurations, values, outside = [], [], []
    for trial in history.trials:
        kind = trial.error_kind
        failed = kind is not None and kind.of_configuration and trial.role is not Role.REVISION
        configuration = within(space, trial.params)
        if not configuration or not (failed or counts(trial)):
            continue
        configurations.append(configuration)
        values.append(np.inf if failed else sign * standing(trial))
        outside.append(trial.violation > 0)
    results = np.array(values)
    is_outside = np.array(outside, dtype=bool)
    usable = results[np.isfinite(results) & ~is_outside]
    if len(usable) < FEWEST_TRIALS:
        return None
    warp = Warp(float(usable.min()), float(np.median(usable)))
    no_better = np.maximum(results, warp.middle)
    standings = warp(np.where(is_outside, no_better, results))
    order = np.argsort(standings, kind="stable")
    chosen = order[_thinned(len(order), MOST_TRIALS)]
    reached = standings.round(DIGITS).tolist()
    trials = [EarlierTrial(configurations[i], reached[i]) for i in chosen]
    return EarlierStudy(study.name, trials)


def within(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration for the parameters of a space; empty if it lacks one."""
    inside = {name: value for name, value in params.items() if name in space}
    shared = as_written(space, inside)
    is_inside = all(_has(space[name], value) for name, value in shared.items())
    return shared if is_inside else {}


def _has(parameter: Parameter, value: Any) -> bool:
    if isinstance(parameter, CategoricalParameter):
        return parameter.problem_with(value) is None
    return is_number(value) and parameter.low <= value <= parameter.high


def _thinned(count: int, most: int) -> Ints:
    """(at most `most`,) Ranks: the best ones for one half, and others evenly from there on."""
    if count <= most:
        return np.arange(count)
    best = most - most // 2
    others = np.linspace(best, count - 1, most // 2).round()
    return np.concatenate([np.arange(best), others.astype(np.int64)])


# ------------------------------------------------------------------------ the evidence in the model


class EarlierStudies:
    """The evidence of all earlier studies for one study."""

    def __init__(self, encoding: SpaceEncoding, studies: Sequence[EarlierStudy]) -> None:
        self._encoding = encoding
        self._points: list[Floats] = []
        self._known: list[Bools] = []
        self._values: list[Floats] = []
        names = list(encoding.space)
        for study in studies:
            points = [encoding.point(trial.params) for trial in study.trials]
            known = [[name in trial.params for name in names] for trial in study.trials]
            standings = np.array([trial.standing for trial in study.trials])
            self._points.append(np.array(points))
            self._known.append(np.array(known))
            self._values.append(standings - standings.mean())
        self._openings = self._chosen_first() if studies else []

    def __len__(self) -> int:
        return len(self._values)

    @property
    def usual(self) -> list[float]:
        """(studies,) Their agreements as long as nothing is known."""
        return [float(AGREEMENTS.mean())] * len(self)

    def rows(self, seen: int) -> int:
        """The most rows of evidence once this study has so many results."""
        most = min(ROWS, sum(map(len, self._values)))
        return int(most * _left(seen))

    def beside(self, own: Evidence, agreements: Sequence[float], most: int) -> Evidence:
        """The study's own rows, and those of the others: the more of each, the more it agrees."""
        total = sum(agreements)
        if total == 0:
            return own
        rows = [int(most * agreement / total) for agreement in agreements]
        return _joined([own, *self._evidence(rows)])

    def agreements(self, model: CurveModel, own: Evidence) -> list[float]:
        """(studies,) The agreement of each with this one, from 0 to 1, by the model that fits this
        study and by its rows."""
        only = np.eye(len(self))
        each = []
        for alone in only:
            others = self._evidence((ROWS * alone).astype(int))
            each.append(_mean_share(model, own, others, alone))
        if len(self) == 1:
            return each
        rows = [int(ROWS * agreement / max(sum(each), 1e-9)) for agreement in each]
        together = np.array(each) / AGREEMENTS.max()
        scale = _mean_share(model, own, self._evidence(rows), together)
        return [float(scale * agreement) for agreement in together]

    def _evidence(self, rows: Sequence[int] | Ints) -> list[Evidence]:
        found = []
        number = -2  # below those of this study's trials, and of new ones
        for study, count in enumerate(rows):
            chosen = _thinned(len(self._values[study]), count)
            n = len(chosen)
            if not n:
                continue
            features = self._encoding.features(self._points[study][chosen])
            numbers = np.arange(number, number - n, -1)
            number -= n
            points = Points(features, np.ones(n), numbers, np.full(n, study + 1))
            found.append(Evidence(points, self._values[study][chosen]))
        return found

    # ---------------------------------------------------------------------------- first proposals

    def opening(self, index: int, otherwise: Floats) -> Floats | None:
        """(parameters,) The configuration to try after so many proposals; None if there is none.
        `otherwise` has the parameters that the earlier study did not have."""
        if index >= len(self._openings):
            return None
        study, rank = self._openings[index]
        return np.where(self._known[study][rank], self._points[study][rank], otherwise)

    def leading(self, agreements: Sequence[float]) -> tuple[Floats, Floats]:
        """(n, parameters) The best configurations, and (n,) a weight for each of them."""
        points = [each[:LEADING] for each in self._points]
        weights = np.repeat(np.array(agreements) + 1e-3, [len(each) for each in points])
        return np.concatenate(points), weights / weights.sum()

    def _chosen_first(self) -> list[tuple[int, int]]:
        """The study and rank of a few configurations that together are good on all studies.

        Each one brings the best expected in every study down as far as any can, and is not close to
        those before it.
        """
        places = []
        for study, points in enumerate(self._points):
            count = min(LEADING, len(points))
            places += [(study, rank) for rank in range(count)]
        points = np.array([self._points[study][rank] for study, rank in places])
        expected = self._expected(points)
        means = expected.mean(0)
        reached = np.full(len(self), np.inf)
        free = np.ones(len(points), dtype=bool)
        chosen: list[tuple[int, int]] = []
        while len(chosen) < OPENINGS and free.any():
            lowered = np.minimum(reached[:, None], expected).mean(0)
            order = np.lexsort((means, lowered.round(DIGITS), ~free))
            first = int(order[0])
            chosen.append(places[first])
            reached = np.minimum(reached, expected[:, first])
            distances = np.abs(points - points[first])
            free &= distances.max(1) > CLOSE
        return chosen

    def _expected(self, points: Floats) -> Floats:
        encoding = self._encoding
        model = CurveModel(encoding.dimensions, encoding.parameters, None, [0.0] * len(self))
        features = encoding.features(points)
        n = len(points)
        expected = []
        for study, alone in enumerate(np.eye(len(self), dtype=int)):
            (evidence,) = self._evidence(MOST_TRIALS * alone)
            there = Points(features, np.ones(n), np.full(n, -1), np.full(n, study + 1))
            mean, _ = model.condition(evidence).predict(there)
            expected.append(mean)
        return np.array(expected)


def faded(agreements: Sequence[float], seen: int) -> list[float]:
    """(studies,) The agreements that are left once so many trials have shown a value.

    The best configuration is nowhere exactly the same, and rows that agree in most places would
    keep the search from it.
    """
    return [_left(seen) * agreement for agreement in agreements]


def _left(seen: int) -> float:
    return min(1.0, FADING_FROM / max(1, seen))


def _mean_share(
    model: CurveModel, own: Evidence, others: Sequence[Evidence], agreements: Floats
) -> float:
    """The mean of `AGREEMENTS`, each weighed by the probability that it gives to a study's own rows
    where the agreements are multiplied by it."""
    if not others:
        return 0.0
    theirs = _joined(others)
    everything = _joined([own, *others])
    logs = []
    for share in AGREEMENTS:
        shared = model.with_agreements(share * agreements)
        whole = shared.condition(everything).log_likelihood
        logs.append(whole - shared.condition(theirs).log_likelihood)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    return float(weights @ AGREEMENTS)


def _joined(parts: Sequence[Evidence]) -> Evidence:
    points = [part.points for part in parts]
    joined = Points(
        np.concatenate([each.x for each in points]),
        np.concatenate([each.tau for each in points]),
        np.concatenate([each.trial for each in points]),
        np.concatenate([studies_of(each) for each in points]),
    )
    return Evidence(joined, np.concatenate([part.z for part in parts]))
