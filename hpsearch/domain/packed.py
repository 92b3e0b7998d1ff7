"""The reports of a trial that has ended, in a third of the memory: a study keeps them all."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from struct import pack
from typing import cast

from hpsearch.domain.records import ReportRecord

_FIXED = ("resource", "value", "attempt", "step", "elapsed", "created")
Reports = dict[float, ReportRecord]


class PackedReports(Mapping[float, ReportRecord]):
    """Reports by resource, ascending. Each is made anew when it is asked for.

    Args:
        reports: Reports with the same metrics, of one trial.
    """

    __slots__ = ("_cells", "_names", "_trial")

    def __init__(self, reports: Mapping[float, ReportRecord]) -> None:
        ordered = [reports[at] for at in sorted(reports)]
        self._trial = ordered[0].trial
        self._names = _shared(tuple(ordered[0].metrics))
        cells: list[float] = []
        for report in ordered:
            fixed = [getattr(report, name) for name in _FIXED]
            cells += (math.nan if cell is None else cell for cell in fixed)
            cells += (report.metrics[name] for name in self._names)
        self._cells = pack(f"{len(cells)}d", *cells)

    def __len__(self) -> int:
        return len(self._cells) // (8 * self._width)

    def __iter__(self) -> Iterator[float]:
        return iter(self._doubles[:: self._width])

    def __getitem__(self, resource: float) -> ReportRecord:
        resources = self._doubles[:: self._width]
        place = bisect.bisect_left(resources, resource)
        if place == len(resources) or resources[place] != resource:
            raise KeyError(resource)
        cells = self._doubles[place * self._width : (place + 1) * self._width].tolist()
        _, value, attempt, step, elapsed, created = cells[: len(_FIXED)]
        return ReportRecord(
            trial=self._trial,
            resource=resource,
            value=_known(value),
            metrics=dict(zip(self._names, cells[len(_FIXED) :], strict=True)),
            attempt=None if math.isnan(attempt) else int(attempt),
            step=None if math.isnan(step) else int(step),
            elapsed=_known(elapsed),
            created=created,
        )

    @property
    def _width(self) -> int:
        """The cells of a report."""
        return len(_FIXED) + len(self._names)

    @property
    def _doubles(self) -> memoryview[float]:
        return memoryview(self._cells).cast("d")

    def __repr__(self) -> str:
        return repr(dict(self))


def _known(cell: float) -> float | None:
    return None if math.isnan(cell) else cell


@lru_cache(maxsize=1024)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


def packed(reports: Reports) -> Reports:
    """Reports that are only read from now on; as they are, where a float cannot hold all that they
    say."""
    if not isinstance(reports, dict) or not all(map(_fits, reports.values())):
        return reports
    if len({tuple(report.metrics) for report in reports.values()}) != 1:
        return reports
    return cast(Reports, PackedReports(reports))


def _fits(report: ReportRecord) -> bool:
    is_exact = report.step is None or abs(report.step) <= 2**53
    return is_exact and all(type(value) is float for value in report.metrics.values())
