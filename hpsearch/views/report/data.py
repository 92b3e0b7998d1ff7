"""The data of a report: all that its page shows, read once; how its compute time was spent, and how
its configurations rank.

The ledger charges an attempt when it ends. Here its charge is spread evenly over its time, so that
every moment between has its share.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution
from sqlalchemy import Connection

from hpsearch.domain.facts import OF_SEARCH, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import cell
from hpsearch.domain.records import Outcome
from hpsearch.search.ranking.selection import Ranked
from hpsearch.store.reading.attempts import idle_seconds, revision_rows
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import HistoryFrames, Shown, history_frames
from hpsearch.store.reading.queries import StudyHead, TrialRow
from hpsearch.store.reading.status import StudyStatus, study_status
from hpsearch.views.result import StudyResult, study_result

TOP = 10  # the number of best trials that are listed


@dataclass(frozen=True, slots=True)
class ReportData:
    """The records of a study, as its page shows them."""

    study: StudyHead
    status: StudyStatus
    history: HistoryFrames
    result: StudyResult
    now: float  # the time at which it was read, in seconds since the epoch
    until: float  # the time until which it is known
    attempts: pd.DataFrame  # its attempts, with an end each (`closed`)
    revisions: Sequence[Mapping[str, Any]]  # as `store.reading.attempts` has them
    command: Callable[[str], str]
    """Completes a command, such as ``best NAME``, so that it can be repeated where it is read."""

    @property
    def goal(self) -> GoalColumns:
        return self.history.goals[0]

    @property
    def unit(self) -> str:
        spec = self.result.trust.spec
        return "resource" if spec is None else spec.budget.per_trial.unit.value

    @property
    def ranked(self) -> Sequence[Ranked[TrialRow]]:
        """The best trials that are listed, best first; with several objectives, the whole front."""
        return self.result.shown(TOP if self.study.has_best else None)


def report_data(
    connection: Connection,
    study: StudyHead,
    now: float,
    command: Callable[[str], str] = "hpsearch {}".format,
) -> ReportData:
    """Read all that the report of a study shows; `now` is in seconds since the epoch. Raises
    Damaged if the database holds what this program never writes."""
    result = study_result(connection, study, TOP)
    history = history_frames(connection, study, result.trust.spec)
    until = history.last if study.driver is None else now
    status = study_status(connection, study, result.ranked)
    attempts = closed(history.attempts, until)
    revisions = revision_rows(connection, study)
    return ReportData(study, status, history, result, now, until, attempts, revisions, command)


_PURPOSES = {
    State.COMPLETE: "finished",
    State.PAUSED: "paused or pruned",
    State.PRUNED: "paused or pruned",
    State.FAILED: "failed or lost",
    State.RUNNING: "not ended",
    State.QUEUED: "not ended",
}
LOST = _PURPOSES[State.FAILED]
_OTHERS = {Role.CONFIRM: "confirmation", Role.REVISION: "changed code"}
START_UP, IDLE = "start-up", "idle slots"


def closed(attempts: pd.DataFrame, now: float) -> pd.DataFrame:
    """The attempts with an end and a charge each: one that is live has lasted until `now`, and is
    charged as much a second as the others were."""
    done = attempts.copy()
    is_live = done["ended"].isna()
    ran_s = (done["ended"] - done["started"])[~is_live].sum()
    charged = done["gpu_seconds"][~is_live].sum()
    rate = charged / ran_s if ran_s > 0 else 1.0
    done.loc[is_live, "ended"] = np.maximum(now, done.loc[is_live, "started"])
    live_s = (done["ended"] - done["started"])[is_live]
    done.loc[is_live, "gpu_seconds"] = live_s * rate
    return done


def gpu_clock(moments: ArrayLike, attempts: pd.DataFrame) -> NDArray[np.float64]:
    """GPU-seconds that a study had used at each moment; its attempts have an end each."""
    at = np.asarray(moments, float)
    if attempts.empty:
        return np.zeros_like(at)
    started = attempts["started"].to_numpy(float)
    lasted = np.maximum(attempts["ended"].to_numpy(float) - started, 1e-9)
    rate = attempts["gpu_seconds"].to_numpy(float) / lasted
    moments_of_change = np.concatenate([started, started + lasted])
    order = np.argsort(moments_of_change, kind="stable")
    knots = moments_of_change[order]
    slopes = np.concatenate([rate, -rate])[order].cumsum()
    spent = np.cumsum(slopes[:-1] * np.diff(knots))
    return np.asarray(np.interp(at, knots, [0.0, *spent]))


def improvements(
    history: HistoryFrames, goal: GoalColumns, attempts: pd.DataFrame, until: float
) -> pd.DataFrame:
    """The best value so far, one row for each time that it changed, and a last one for the end:
    `trial`, `value`, `moment` and `gpu_seconds`. The attempts have an end each."""
    bests = list(history.bests[goal.column])
    if bests:
        bests.append(bests[-1]._replace(moment=max(until, bests[-1].moment)))
    frame = pd.DataFrame(bests, columns=list(Shown._fields))
    return frame.assign(gpu_seconds=gpu_clock(frame["moment"], attempts))


def spending(attempts: pd.DataFrame, begins: Sequence[float]) -> dict[str, tuple[float, int]]:
    """The compute time of each purpose and the number of its attempts. The start-up of an attempt
    counts as such, and that of a lost one as lost; the rest by the state of its trial. The attempts
    have an end each; `begins` are the times at which drivers began."""
    charged = attempts["gpu_seconds"]
    lasted_s = np.maximum(attempts["ended"] - attempts["started"], 1e-9)
    start_up_s = attempts["start_up_seconds"].fillna(0.0)
    start_up = charged * np.clip(start_up_s / lasted_s, 0.0, 1.0)
    purpose = attempts["state"].map({state.value: name for state, name in _PURPOSES.items()})
    for role, name in _OTHERS.items():
        is_of_it = (attempts["role"] == role) & (attempts["state"] == State.COMPLETE)
        purpose = purpose.mask(is_of_it, name)
    has_failed = attempts["outcome"].isin([Outcome.LOST.value, Outcome.FAILED.value])
    purpose = purpose.mask(has_failed, LOST)
    trained = (charged - start_up).groupby(purpose).sum()
    counts = purpose.value_counts()
    found = {}
    for name in dict.fromkeys([*_PURPOSES.values(), *_OTHERS.values()]):
        found[name] = (float(trained.get(name, 0.0)), int(counts.get(name, 0)))
    found[START_UP] = (float(start_up.sum()), int((start_up > 0).sum()))
    price = charged.sum() / lasted_s.sum() if len(attempts) else 0.0
    found[IDLE] = (price * idle(attempts, begins), 0)
    return {name: (seconds, number) for name, (seconds, number) in found.items() if seconds > 0}


def idle(attempts: pd.DataFrame, begins: Sequence[float]) -> float:
    """Seconds that slots waited while the study was driven: between their attempts, and from their
    last one to the end of the last attempt of that driver, or until they were given back."""
    driver = np.searchsorted(np.sort(begins), attempts["started"], side="right")
    waited_s = 0.0
    for _, own in attempts.groupby(driver):
        rows = own[["worker", "started", "ended"]].itertuples(index=False, name=None)
        waited_s += sum(idle_seconds(rows, float(own["ended"].max())).values())
    return waited_s


class Tier(StrEnum):
    """The rank of a configuration among all of its study."""

    BEST = "best tenth"
    BETTER = "better half"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class ParameterValues:
    """The values of a parameter."""

    name: str
    values: pd.Series
    """By trial: numbers, or texts of categories; NaN or None where a trial has none."""
    log: bool = False  # True if numbers are drawn on a logarithmic scale
    categories: tuple[str, ...] | None = None  # its values as texts, in order; None for numbers


def ranked_configurations(history: HistoryFrames, goal: GoalColumns) -> pd.DataFrame:
    """The `standing` and the `tier` of trials, by number, best first: of those that keep the limits
    and have a value, without repeats and failed ones."""
    trials = history.trials
    can_rank = trials["role"].isin(OF_SEARCH) & (trials["state"] != State.FAILED)
    can_rank &= (trials["violation"] == 0) & trials[goal.standing].notna()
    frame = trials.loc[can_rank, [goal.standing]].rename(columns={goal.standing: "standing"})
    frame = frame.sort_values("standing", ascending=not goal.maximize, kind="stable")
    fraction = np.arange(len(frame)) / max(1, len(frame))
    tiers = [Tier.BEST.value, Tier.BETTER.value]
    frame["tier"] = np.select([fraction < 0.1, fraction < 0.5], tiers, Tier.REST.value)
    return frame


def parameter_values(
    params: pd.DataFrame, space: Mapping[str, BaseDistribution]
) -> dict[str, ParameterValues]:
    """The values of each parameter that trials have, in the order of the space."""
    names = [name for name in space if name in params.columns]
    names += [name for name in params.columns if name not in space]
    return {name: _values(params[name], space.get(name)) for name in names}


def _values(values: pd.Series, drawn_from: BaseDistribution | None) -> ParameterValues:
    name = str(values.name)
    present = values[values.notna()]
    choices = []
    if isinstance(drawn_from, CategoricalDistribution):
        choices = [cell(choice) for choice in drawn_from.choices]
    elif all(map(is_number, present)):
        is_log = getattr(drawn_from, "log", False) and all(value > 0 for value in present)
        numbers = pd.to_numeric(values).astype(float)
        return ParameterValues(name, numbers, log=is_log and not present.empty)
    texts = present.map(cell)
    categories = tuple(dict.fromkeys([*choices, *texts]))
    return ParameterValues(name, texts.reindex(values.index), categories=categories)


def is_number(value: object) -> bool:
    """True for a finite number; true and false are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


FEWEST_TRIALS = 10
TREES = 64
MOST_TRIALS = 500
"""Trials that a forest is fitted to: with more, the shares hardly change, and it takes long."""


@dataclass(frozen=True, slots=True)
class Importances:
    """The share of the differences between trials that each parameter explains."""

    frame: pd.DataFrame
    """Columns `parameter` and `importance`, the largest first; empty if nothing is known."""
    trials: int  # the number of trials that were compared
    unmeasured: tuple[str, ...]
    """Parameters that not every trial has, or that never differ: they are not compared."""
    why_not: str | None = None  # the reason why nothing is known


def parameter_importances(standing: pd.Series, params: pd.DataFrame) -> Importances:
    """The importances of the parameters that all trials have, by what is expected of trials in
    full, or else what they have shown (`standing`, best first): the shares of the variance that the
    splits of a forest of regression trees explain (mean decrease in impurity). Optuna's evaluators
    look at complete trials alone, of which there may be few."""
    standing = standing.iloc[:: max(1, -(-len(standing) // MOST_TRIALS))]
    params = params.loc[standing.index]
    is_everywhere = params.notna().all()
    differs = params.map(str).nunique() > 1
    measured = [name for name in params.columns if is_everywhere[name] and differs[name]]
    explained, why_not = pd.Series(dtype=float), None
    if len(standing) < FEWEST_TRIALS:
        why_not = f"fewer than {FEWEST_TRIALS} trials have a value"
    elif standing.nunique() < 2:
        why_not = "all trials have the same value"
    elif not measured:
        why_not = "no parameter differs between trials"
    else:
        explained = _fitted(standing, params[measured])
    frame = pd.DataFrame({"parameter": explained.index, "importance": explained.to_numpy(float)})
    unmeasured = tuple(name for name in params.columns if name not in measured)
    return Importances(frame, len(standing), unmeasured, why_not)


def _fitted(standing: pd.Series, params: pd.DataFrame) -> pd.Series:
    from sklearn.ensemble import RandomForestRegressor

    encoded = params.apply(_codes)
    # Squares of very large or small numbers would not be floats.
    middle = standing.max() / 2 + standing.min() / 2
    halves = standing / 2 - middle / 2
    forest = RandomForestRegressor(TREES, random_state=0).fit(encoded, halves / halves.abs().max())
    explained = pd.Series(forest.feature_importances_, index=params.columns)
    return explained.sort_values(ascending=False, kind="stable")


def _codes(values: pd.Series) -> pd.Series:
    """The places of numbers and categories among others: trees only compare, in float32."""
    if all(map(is_number, values)):
        return values.astype(float).rank(method="dense")
    codes, _ = pd.factorize(values.map(cell), sort=True)
    return pd.Series(codes, index=values.index)
