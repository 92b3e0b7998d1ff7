"""The time for which slots had nothing to do, by the attempts on record."""

from collections.abc import Iterable

from hpsearch.domain.facts import IDLE_KEPT_S


def idle_seconds(attempts: Iterable[tuple[str, float, float]], end: float) -> dict[str, float]:
    """Seconds for which each slot waited: between its attempts, and from its last one until `end`.

    All slots but one are given back to the cluster after `IDLE_KEPT_S` seconds without work.

    Args:
        attempts: The slot of each, its start and its end, of one driver.
        end: The time at which that driver ended, or now.
    """
    waited: dict[str, float] = {}
    last: dict[str, float] = {}
    for slot, started, ended in sorted(attempts, key=lambda attempt: attempt[1]):
        gap_s = started - last.get(slot, started)
        waited[slot] = waited.get(slot, 0.0) + max(0.0, gap_s)
        last[slot] = max(ended, last.get(slot, ended))
    for place, slot in enumerate(sorted(last, key=lambda slot: last[slot])):
        after_s = max(0.0, end - last[slot])
        waited[slot] += after_s if place == 0 else min(after_s, IDLE_KEPT_S)
    return waited
