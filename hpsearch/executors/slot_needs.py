"""The resources that one slot takes of a Ray cluster, and how many slots have room."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping

from hpsearch.errors import UserError
from hpsearch.executors import autoscaler
from hpsearch.executors.ray_cluster import HeadNode, Node
from hpsearch.study_file.models import Resources

TELL_S = 600.0  # how often it is said that the study waits for room

log = logging.getLogger("hpsearch")


class SlotNeeds:
    """The CPUs and GPUs of one slot, on the cluster of `head`; raises UserError if no node of it
    has that, and none that its autoscaler could bring."""

    def __init__(self, resources: Resources, head: HeadNode) -> None:
        self._cpu = resources.cpu
        self.has_autoscaler = autoscaler.has_autoscaler()
        self.gpus = self._gpus_a_slot(resources, head)
        self.takes = {"CPU": self._cpu, "GPU": self.gpus}
        if not self.gpus:
            del self.takes["GPU"]
        if not isinstance(resources.workers, int):
            self._refuse_too_large(head.staying)

    def __str__(self) -> str:
        return f"{self._cpu:g} CPU and {self.gpus:g} GPU"

    def fitting(self, has: Mapping[str, float]) -> int:
        """How many slots fit into resources."""
        by_cpu = has.get("CPU", 0.0) / self._cpu
        if not self.gpus:
            return int(by_cpu)
        by_gpu = has.get("GPU", 0.0) / self.gpus
        return int(min(by_cpu, by_gpu))

    def _gpus_a_slot(self, resources: Resources, head: HeadNode) -> float:
        if resources.gpu != "auto":
            return float(resources.gpu)
        if any(node.resources.get("GPU") for node in head.staying):
            return 1.0
        if not self.has_autoscaler:
            return 0.0
        could = autoscaler.could_bring({"CPU": self._cpu, "GPU": 1.0})
        if could is None:
            raise UserError(
                "the cluster has no GPU now, and its autoscaler does not say whether it could bring"
                " one",
                "set resources.gpu in the study file: 1 to wait for one, or 0 to train on CPUs",
            )
        if not could:
            log.warning("the autoscaler has no node with a GPU to bring: workers train on CPUs")
        return 1.0 if could else 0.0

    def _refuse_too_large(self, nodes: list[Node]) -> None:
        if any(self.fitting(node.resources) for node in nodes):
            return
        if self.has_autoscaler and autoscaler.could_bring(self.takes) is not False:
            return
        brings = ", and its autoscaler cannot bring one" if self.has_autoscaler else ""
        raise UserError(
            f"no node of the cluster has the {self} that a worker takes{brings}",
            "lower resources.cpu or resources.gpu in the study file",
        )


class Queue:
    """Says now and then that slots wait for room on the cluster."""

    def __init__(self, needs: SlotNeeds) -> None:
        self._needs = needs
        self._since = math.inf  # since when slots have waited, by the monotonic clock
        self._told_at = -math.inf  # when that was last said

    def note(self, waiting: int, now: float, settle_s: float) -> None:
        """So many slots wait now; 0 if enough have their place. Nothing is said in the first
        `settle_s` seconds."""
        if not waiting:
            if self._told_at > self._since:
                log.warning("the cluster has room for the workers now")
            self._since, self._told_at = math.inf, -math.inf
            return
        self._since = min(self._since, now)
        waited_s = now - self._since
        if waited_s < settle_s or now - self._told_at < TELL_S:
            return
        self._told_at = now
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - waited_s))
        by = "the autoscaler to bring" if self._needs.has_autoscaler else "the cluster to have"
        each = "a worker" if waiting == 1 else f"each of {waiting} workers"
        log.warning("waiting since %s for %s %s free for %s", since, by, self._needs, each)
