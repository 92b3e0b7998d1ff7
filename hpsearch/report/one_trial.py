"""One trial in Python: its parameters, its value and how sure that is, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.ranking.repeats import Confirmed
from hpsearch.ranking.selection import Ranked
from hpsearch.report.answer import whole_configuration
from hpsearch.report.wording import PageAnswer, Pieces, ReportPage, foreign
from hpsearch.store.reading.course import goals_of
from hpsearch.store.reading.queries import StudyHead, TrialRow, best_trials, trial_detail
from hpsearch.terminal.answer import luck
from hpsearch.terminal.escapes import escaped
from hpsearch.words.estimates import continued, expected, interval, may_change
from hpsearch.words.numbers import NOTHING, number


@dataclass(frozen=True, repr=False)
class StudyTrial:
    """A trial of a study, as it was when it was read. A notebook shows it with its parameters.

    Args:
        study: The study's name.
        metrics: The names of the objectives.
        row: What is recorded of the trial.
        confirmed: What its repeats with other seeds have shown; None without any.
    """

    study: str
    metrics: Sequence[str]
    row: TrialRow
    confirmed: Confirmed | None

    @property
    def number(self) -> int:
        """Its number in the study."""
        return self.row.number

    @property
    def state(self) -> str:
        """complete, pruned, paused, failed, queued or running."""
        return self.row.state.value

    @property
    def params(self) -> Mapping[str, Any]:
        """Its parameters by name."""
        return self.row.params

    @property
    def value(self) -> float | None:
        """The best value of the first objective that it has shown; None without any."""
        return self.row.value

    @property
    def resource(self) -> float:
        """How far it has trained."""
        return self.row.resource

    @property
    def checkpoint(self) -> str | None:
        """Its best checkpoint, or else its newest; None if it keeps none."""
        return self.row.best_checkpoint or self.row.checkpoint

    def __repr__(self) -> str:
        return escaped(f"<trial {self.number} of {self.study}, {self.state}: {self._values()}>")

    def _repr_html_(self) -> str:
        """The trial, for notebooks."""
        from hpsearch.report.rendering import summary_html

        return summary_html(self._page())

    def _values(self) -> str:
        """``accuracy 0.8123, loss 0.4``"""
        values = [self.row.value] if self.row.values is None else self.row.values
        named = zip(self.metrics, values, strict=False)  # one value, before the first report
        return ", ".join(f"{metric} {number(value)}" for metric, value in named)

    def _page(self) -> ReportPage:
        headline = (f"trial {self.number}, {self.state}: ", foreign(self._values()))
        lines = self._certainty()
        tables = [whole_configuration(self.row)]
        answer = PageAnswer(headline, lines, self.confirmed is not None, "", (), tables)
        return ReportPage(foreign(self.study, 120), (), answer, (), ())

    def _certainty(self) -> list[Pieces]:
        """What is known of its value."""
        row = self.row
        lines: list[Pieces] = []
        if row.error_kind is not None:
            error = foreign(f"{row.error_kind.value}: {row.error_text or NOTHING}")
            lines.append(("It failed: ", error))
        if row.violation > 0:
            lines.append((f"It exceeds the limits by {row.violation:.1%}.",))
        if row.continues is not None:
            lines.append((f"It {continued(row)}, under other parameters.",))
        if self.confirmed is not None:
            lines.append((f"Confirmed (90%): {interval(self.confirmed)}.",))
        elif may_change(row):
            lines.append((f"Expected of it in full (90%): {expected(row)}.",))
        if row.state is not State.COMPLETE:
            lines.append((f"It has not been trained in full: it is {row.state.value}.",))
        elif row.value is not None:
            ranked = Ranked(row, row.value, self.confirmed, tied=False)
            sure = luck(ranked)
            lines.append((f"{sure[:1].upper()}{sure[1:]}.",))
        return lines


def study_trial(connection: Connection, study: StudyHead, wanted: int | None) -> StudyTrial:
    """Read a trial.

    Args:
        connection: To the database.
        study: Its study.
        wanted: Its number; None for the best.

    Raises:
        UserError: There is no such trial; or no trial has a value, or there is no single best.
    """
    metrics = [goal.metric for goal in goals_of(study)]
    if wanted is not None:
        row = trial_detail(connection, study, wanted).trial
        ranked = best_trials(connection, study, 1, where=f"number = {wanted}")
        confirmed = ranked[0].confirmed if ranked and study.has_best else None
        return StudyTrial(study.name, metrics, row, confirmed)
    if not study.has_best:
        raise UserError(f"study {study.name} has no single best trial", "name one by its number")
    ranked = best_trials(connection, study, 1)
    if not ranked:
        message = f"no trial of {study.name} has a value yet"
        raise UserError(message, f"see its progress: hpsearch status {study.name}")
    return StudyTrial(study.name, metrics, ranked[0].trial, ranked[0].confirmed)
