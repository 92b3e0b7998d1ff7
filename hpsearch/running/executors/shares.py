"""The share of a cluster that each of several studies has.

Each driver writes into the cluster's own memory what its study holds, could use and is worth
(`resources.priority`), under the id of its Ray job. Slots are divided in proportion to the
priorities; what one study cannot use goes to the others (weighted max-min fairness). A share is at
least one slot. Room that nobody misses may be used beyond it; a study that holds more than its
share while another is short of its own gives slots back, one at a time.
"""

import json
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import ray
from ray._private.state import state
from ray.experimental.internal_kv import (
    _internal_kv_del,
    _internal_kv_get,
    _internal_kv_list,
    _internal_kv_put,
)

from hpsearch.running.executors.ray_slot import RaySlot

_PREFIX = b"hpsearch-share-1-"  # with the version of the format: programs of others read it
MOVING_S = 15.0  # seconds that a slot may take from one study to another until both have said so
SETTLE_S = 3.0
"""The resources of one more worker must have been free for this long: a study that has none yet is
served first, from Ray's queue. A room that finds no place in this time is given up by a study that
has others."""
ALL = 10**9  # slots of a study that takes all that it can get


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """The part of a cluster that one study holds and could use."""

    unit: str  # GPU or CPU: what slots are counted by
    each: float  # units of a slot
    priority: float
    holds: int  # slots
    wants: int = ALL  # slots, at most

    def share(self, units: float) -> int:
        """The slots that so many units are, at least one and at most those wanted."""
        return min(self.wants, max(1, math.floor(units / self.each + 1e-9)))


def fair(parts: Sequence[ClusterPart], left: float) -> list[int]:
    """The slots that each study should have, of so many units for all of them."""
    units = [0.0] * len(parts)
    open_ = set(range(len(parts)))
    while open_:
        a_priority = left / sum(parts[i].priority for i in open_)
        full = {
            i for i in open_ if parts[i].wants * parts[i].each <= a_priority * parts[i].priority
        }
        for i in full or open_:
            wanted = parts[i].wants * parts[i].each
            units[i] = min(wanted, a_priority * parts[i].priority)
            left -= units[i]
        open_ = open_ - full if full else set()
    return [part.share(amount) for part, amount in zip(parts, units, strict=True)]


class Shares:
    """The part of one study beside those of others. `exchange` calls the head of the cluster."""

    def __init__(self, part: ClusterPart) -> None:
        self.mine = part
        self._most = part.wants
        self._gave = -math.inf  # when a slot last went to another study, by the monotonic clock
        self._others: list[ClusterPart] = []
        self._totals: deque[tuple[float, float]] = deque()
        """The units of all studies, and those free, as they were lately."""
        self._key = _PREFIX + ray.get_runtime_context().get_job_id().encode()

    def exchange(self) -> None:
        """Write this study's part, and read those of others whose drivers live."""
        _internal_kv_put(self._key, json.dumps(asdict(self.mine)).encode())
        dead = {job["JobID"] for job in state.job_table() if job["IsDead"]}
        others = []
        for key in _internal_kv_list(_PREFIX):
            if key.removeprefix(_PREFIX).decode() in dead:
                _internal_kv_del(key)
            elif key != self._key and (text := _internal_kv_get(key)) is not None:
                others.append(ClusterPart(**json.loads(text)))
        self._others = [part for part in others if part.unit == self.mine.unit]

    def slot_of_others(self, placed: Sequence[RaySlot], free: int, now: float) -> RaySlot | None:
        """Note the slots that this study holds, and find one that should be another study's; None
        if there is none, or one has just gone."""
        is_idle = any(slot.is_idle(now, SETTLE_S) for slot in placed)
        wants = sum(bool(slot.attempts) for slot in placed) if is_idle else self._most
        self.mine = replace(self.mine, holds=len(placed), wants=wants)
        going = any(slot.given_back for slot in placed)
        if going or now - self._gave < SETTLE_S:  # the head's figures are not from before that
            return None
        if len(placed) < 2 or (self.spare(free, now) or 0) <= 0:
            return None
        self._gave = now
        return max(placed, key=lambda slot: (not slot.attempts, slot.free_since))

    def spare(self, free: int, now: float) -> int | None:
        """The slots that this study holds beyond its share while another misses some of its own;
        0 if it has its share, less if it misses some too; None if nobody misses any. There is room
        for `free` more.

        A slot that has just moved is neither free nor yet held by its study's word, so the total is
        the highest one of the last seconds.
        """
        parts = [self.mine, *self._others]
        held = sum(part.holds * part.each for part in parts)
        self._totals.append((now, free * self.mine.each + held))
        while self._totals[0][0] < now - MOVING_S:
            self._totals.popleft()
        shares = fair(parts, max(total for _, total in self._totals))
        missed = any(p.holds < n for p, n in zip(parts[1:], shares[1:], strict=True))
        return self.mine.holds - shares[0] if missed else None
