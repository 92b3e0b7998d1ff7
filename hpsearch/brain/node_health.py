"""Nodes on which trials fail while others work: they are set aside, and tried again later.

A node is set aside once `IN_A_ROW` attempts in a row have failed there by an error or a lost
worker, as long as the last attempt on some other node has not. After `FIRST_S` seconds it is tried
again, and the next failure sets it aside for twice as long as the time before. A report clears it.
The last node that works is never set aside. Failures of that row count against no trial: other
nodes run them.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from hpsearch.brain.attempts import Attempts, Slot
from hpsearch.domain import events as ev
from hpsearch.domain.records import Trial

IN_A_ROW = 3
FIRST_S = 300.0
LONGEST_S = 6 * 3600.0


class NodeHealth:
    """The failures of one study's nodes."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._rows: defaultdict[str, list[Trial]] = defaultdict(list)
        """The trials of the attempts that failed in a row, by node."""
        self._times: Counter[str] = Counter()
        """How often each node was set aside in a row."""
        self._until: dict[str, float] = {}

    def worked(self, slot: Slot) -> None:
        """Note that a trial has reported on a slot: its node works."""
        for of_nodes in (self._rows, self._times, self._until):
            of_nodes.pop(slot.place, None)

    def failed(self, slot: Slot, trial: Trial, now: float) -> list[Trial]:
        """Count a failure on a slot. Returns the trials that failed there in a row if that sets its
        node aside, else none."""
        place = slot.place
        if not place:
            return []
        row = self._rows[place]
        row.append(trial)
        enough = 1 if self._times[place] else IN_A_ROW
        if len(row) < enough or not self._others_work(place, now):
            return []
        seconds = min(LONGEST_S, FIRST_S * 2 ** self._times[place])
        self._times[place] += 1
        self._until[place] = now + seconds
        self._attempts.send(ev.Avoid(place, slot.node, seconds))
        return self._rows.pop(place)

    def usable(self, slots: list[Slot], now: float) -> list[Slot]:
        """The slots whose nodes are not set aside."""
        return [slot for slot in slots if not self._is_aside(slot.place, now)]

    def _is_aside(self, place: str, now: float) -> bool:
        until = self._until.get(place, now)
        return until > now and any(each.place != place for each in self._attempts.slots.values())

    def _others_work(self, place: str, now: float) -> bool:
        others = {slot.place for slot in self._attempts.slots.values()} - {place}
        return any(not self._rows[each] and self._until.get(each, now) <= now for each in others)
