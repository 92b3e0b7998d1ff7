"""The reports of a trial that has ended, in less memory: a study keeps them all.

With 20,000 trials of thirty reports of six metrics a driver takes 209 MB in index of 587.
"""

import bisect
import math
from array import array
from collections.abc import Iterator, Mapping
from functools import lru_cache
from struct import unpack_from
from typing import cast

from hpsearch.domain.records import ReportRecord

Reports = dict[float, ReportRecord]
FIXED = 6
"""The cells of a report before its metrics: resource, value, attempt, step, elapsed and created, of
which those that are unknown are NaN."""
BYTES = 8
_FLOAT = frozenset({float})


class PackedReports(Mapping[float, ReportRecord]):
    """Reports by resource, ascending, each made anew when it is asked for. `cells` has report after
    report, `FIXED` cells and the metrics of these names."""

    __slots__ = ("_cells", "_names", "_trial")

    def __init__(self, trial: int, names: tuple[str, ...], cells: list[float]) -> None:
        self._trial, self._names = trial, _shared(names)
        self._cells = array("d", cells).tobytes()

    def __len__(self) -> int:
        return len(self._cells) // (BYTES * self._width)

    def __iter__(self) -> Iterator[float]:
        return iter(memoryview(self._cells).cast("d")[:: self._width])

    def __getitem__(self, resource: float) -> ReportRecord:
        width = self._width
        resources = memoryview(self._cells).cast("d")[::width]
        index = bisect.bisect_left(resources, resource)
        if index == len(resources) or resources[index] != resource:
            raise KeyError(resource)
        cells = unpack_from(f"{width}d", self._cells, BYTES * width * index)
        at, value, attempt, step, elapsed, created = cells[:FIXED]
        return ReportRecord(
            self._trial,
            at,
            None if math.isnan(value) else value,
            dict(zip(self._names, cells[FIXED:], strict=True)),
            None if math.isnan(attempt) else int(attempt),
            None if math.isnan(step) else int(step),
            None if math.isnan(elapsed) else elapsed,
            created,
        )

    def __repr__(self) -> str:
        return repr(dict(self))

    @property
    def _width(self) -> int:
        return FIXED + len(self._names)


@lru_cache(maxsize=1024)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


def packed(reports: Reports) -> Reports:
    """Reports that are only read from now on; as they are, where their metrics differ or a float
    cannot hold all that they say."""
    if not isinstance(reports, dict) or not reports:
        return reports
    first = next(iter(reports.values()))
    names = tuple(first.metrics)
    cells: list[float] = []
    for at in sorted(reports):
        report = reports[at]
        metrics, step = report.metrics, report.step
        is_exact = step is None or -(2**53) <= step <= 2**53
        if (
            tuple(metrics) != names
            or not is_exact
            or not set(map(type, metrics.values())) <= _FLOAT
        ):
            return reports
        fixed = (at, report.value, report.attempt, step, report.elapsed, report.created)
        cells += [math.nan if cell is None else cell for cell in fixed]
        cells += metrics.values()
    return cast(Reports, PackedReports(first.trial, names, cells))
