"""The rooms of slots: placement groups, with a place for each process of a slot.

A room waits in Ray's queue until it has a place. The head reserves rooms and takes them back, so
neither happens while it is silent.
"""

from __future__ import annotations

from functools import partial

import ray
from ray.util.placement_group import PlacementGroup

from hpsearch.running.executors.cluster.ray_cluster import HeadNode, ask_head

NODE_LABEL = "ray.io/node-id"  # a label that Ray gives each node


class Rooms:
    """Reserves rooms, and gives back those that slots have left.

    Args:
        head: The head of the cluster.
        takes: What a process of a slot takes, by resource.
        processes: The number of processes of a slot.
    """

    def __init__(self, head: HeadNode, takes: dict[str, float], processes: int) -> None:
        self._head = head
        self._takes = takes
        self._processes = processes
        self._left: list[PlacementGroup] = []

    def reserve(self) -> PlacementGroup | None:
        """A new room, on nodes that are not set aside; None while the head is silent."""
        return ask_head(self._new, self.leave) if self._head.answers else None

    def _new(self) -> PlacementGroup:
        bundles = [self._takes] * self._processes
        return ray.util.placement_group(bundles, bundle_label_selector=self._elsewhere())

    def _elsewhere(self) -> list[dict[str, str]] | None:
        """For each process of a slot: not on a node that is set aside."""
        aside = ", ".join(sorted(self._head.aside))
        return [{NODE_LABEL: f"!in({aside})"}] * self._processes if aside else None

    def leave(self, room: PlacementGroup) -> None:
        """Note that a room is not used any more."""
        self._left.append(room)

    def give_back(self) -> None:
        """Give back the rooms that were left. Ray does so itself at the driver's end."""
        while self._left and self._head.answers:
            if ask_head(partial(_removed, self._left[0])) is None:
                return
            del self._left[0]


def _removed(room: PlacementGroup) -> PlacementGroup:
    ray.util.remove_placement_group(room)
    return room
