"""The result of a study that has ended: what is best, what next, how sure that is, its cost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from hpsearch.result.study_result import StudyResult
from hpsearch.store.reading.standing import StudyStatus
from hpsearch.terminal import tables
from hpsearch.words.certainty import in_detail, without_effect
from hpsearch.words.numbers import cell
from hpsearch.words.opening import opening


def result_tables(
    result: StudyResult,
    status: StudyStatus,
    next_commands: Sequence[tuple[str, str]],
    width: tables.Width,
) -> list[RenderableType]:
    """The sentence that opens the result, the parameters of the best configuration, the commands to
    go on with, each with what it does, and how sure it is and what it cost."""
    parts: list[RenderableType] = ["".join(opening(result, status.summary))]
    if warning := without_effect(result.no_effect):
        parts.append(warning)
    if result.best is not None:
        trial = result.best.trial
        params = {name: cell(value) for name, value in trial.params.items()}
        title = f"\nbest configuration: trial {trial.number}"
        parts.append(tables.fact_table(params, width, title))
    elif result.ranked:
        front = tables.best(result.ranked, width, [metric for metric, _ in result.objectives])
        front.title = tables.heading("\nconfigurations that no other beats in all objectives")
        parts.append(front)
    if next_commands:
        parts.append(tables.fact_table(dict(next_commands), width, "\nto go on"))
    parts.append(tables.fact_table(in_detail(result, status), width, "\nin detail"))
    return parts
