"""What a search believes of its space, as one document: the values that it expects of new
configurations, how much each parameter matters, and where trials have failed.

The range of a parameter is seen in `PARTS` parts of its own scale, or its choices. Its importance
is the share of the variance of expected values that the means of its parts explain (Sobol's index
of first order), over random configurations.
"""

from collections import Counter
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution

from hpsearch.domain.numbers import finite
from hpsearch.domain.records import Trial
from hpsearch.running.creation.study import spec_of
from hpsearch.search.curve_model.encoding import Floats, Ints, SpaceEncoding
from hpsearch.search.curve_model.forecast import WIDER, Outlook
from hpsearch.search.curve_model.model import Points
from hpsearch.search.proposals import encoding_of, forecast_of
from hpsearch.store.store import Store

PARTS, DRAWN, MOST_NEW = 4, 512, 8
"""Parts of a range, random configurations, and how many of them are listed."""


def beliefs_document(store: Store, study: str) -> dict[str, Any]:
    """What the search of a study believes, by its records. Raises StudyNotFound."""
    history = store.load(study)
    spec = spec_of(history.study)
    forecast, encoding = forecast_of(spec, history), encoding_of(spec)
    outlook = None if forecast is None else forecast.outlook(fit=False)
    points = np.random.default_rng(0).random((DRAWN, encoding.parameters))
    points = points[encoding.allowed(points)]
    found: dict[str, Any] = {"study": study, "objective": spec.objective.metric, "new": []}
    means = None
    if outlook is not None and len(points):
        means, deviations = _expected(outlook, points)
        best = np.argsort(spec.objective.sign * means, kind="stable")[:MOST_NEW]
        found["new"] = [
            {
                "params": _params(encoding, points[n]),
                "expected": float(means[n]),
                "deviation": float(deviations[n]),
            }
            for n in best
        ]
    trials = [each for each in history.trials if each.params and not each.out_of_space]
    found["parameters"] = {
        name: _of_parameter(encoding, column, points, means, trials)
        for column, name in enumerate(encoding.space)
    }
    plain: dict[str, Any] = finite(found)
    return plain


def _expected(outlook: Outlook, points: Floats) -> tuple[Floats, Floats]:
    """(n,) each: the objective that is expected of points in full, and its standard deviation."""
    features = outlook.encoding.features(points)
    new = Points(features, np.ones(len(points)), np.full(len(points), -1))
    means, deviations = outlook.posterior.predict(new)
    losses, worse = (
        outlook.losses(means),
        outlook.losses(means + WIDER * outlook.doubt * deviations),
    )
    return outlook.sign * losses, worse - losses


def _params(encoding: SpaceEncoding, point: Floats) -> dict[str, Any]:
    active = encoding.active(point[None])
    return {name: value for name, value in encoding.params(point).items() if active[name][0]}


def _of_parameter(
    encoding: SpaceEncoding, column: int, points: Floats, means: Floats | None, trials: list[Trial]
) -> dict[str, Any]:
    name, distribution = list(encoding.space.items())[column]
    is_choice = isinstance(distribution, CategoricalDistribution)
    count = len(getattr(distribution, "choices", range(PARTS)))
    own = [trial for trial in trials if name in trial.params and trial.role.of_search]
    tried_at = _places(np.array([encoding.point(trial.params)[column] for trial in own]), count)
    active = encoding.active(points)[name]
    places, parts, explained = _places(points[active, column], count), [], 0.0
    values = None if means is None or not active.any() else means[active]
    for at in range(count):
        ends = [_value(encoding, column, (at + share) / count) for share in (0.0, 0.5, 1.0)]
        part = {"value": ends[1]} if is_choice else {"from": ends[0], "to": ends[2]}
        there = [trial for trial, place in zip(own, tried_at, strict=True) if place == at]
        failed = Counter(each.error_kind.value for each in there if each.error_kind is not None)
        part |= {"expected": None, "tried": len(there), "failed": dict(failed)}
        if values is not None and (places == at).any():
            part["expected"] = mean = float(values[places == at].mean())
            explained += float((places == at).mean() * (mean - values.mean()) ** 2)
        parts.append(part)
    variance = 0.0 if values is None else float(values.var())
    return {"importance": explained / variance if variance else None, "parts": parts}


def _places(coordinates: Floats, count: int) -> Ints:
    return np.asarray(np.minimum(count - 1, coordinates * count), dtype=np.int64)


def _value(encoding: SpaceEncoding, column: int, coordinate: float) -> Any:
    point = np.full(encoding.parameters, 0.5)
    point[column] = min(coordinate, 1.0)
    return list(encoding.params(point).values())[column]
