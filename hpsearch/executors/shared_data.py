"""Prepared data that the trials of a study share, made once for each way in which it is prepared.

Preparing may fail, and what was prepared may be lost with its node. Both show when an attempt that
was given the data fails. What such an attempt used is forgotten, and made again for the next
attempt that needs it. A mistake in the data fails again in the same way, and a study whose trials
all fail gives up. A connection that was lost for a moment costs only the trials that it met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

KEPT = 4  # how many are kept in addition to those in use

Box = list[Any]
"""Holds a reference. Boxed, it can be passed to a call that does not wait for the data."""


class SharedData:
    """The prepared data, by key: what attempts use, and the `kept` most recent of the rest.
    `prepare` begins to prepare data for settings, and returns a reference."""

    def __init__(self, prepare: Callable[[Mapping[str, Any]], Any], kept: int = KEPT) -> None:
        self._prepare = prepare
        self._kept = kept
        self._boxes: dict[str, Box] = {}  # by key, the most recently used last
        self._used: dict[tuple[int, int], Box] = {}  # what each attempt uses

    def box_for(self, attempt: tuple[int, int], key: str, params: Mapping[str, Any]) -> Box:
        """A box with a reference to the prepared data for an attempt's settings, kept until
        `ended`. The key is equal for settings for which the data is the same."""
        box = self._boxes.pop(key, None)
        if box is None:
            box = [self._prepare(params)]
        self._boxes[key] = box
        self._used[attempt] = box
        self._drop_idle()
        return box

    def ended(self, attempt: tuple[int, int], *, suspect: bool = False) -> None:
        """An attempt uses its data no longer. Where it is suspect, no other attempt is given it."""
        box = self._used.pop(attempt, None)
        if suspect:
            self._boxes = {key: other for key, other in self._boxes.items() if other is not box}
        self._drop_idle()

    def _drop_idle(self) -> None:
        in_use = {id(box) for box in self._used.values()}
        idle = []
        for key, box in self._boxes.items():
            if id(box) not in in_use:
                idle.append(key)
        too_many = max(0, len(idle) - self._kept)
        for key in idle[:too_many]:
            del self._boxes[key]
