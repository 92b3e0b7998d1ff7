"""The resources that one slot takes of a Ray cluster, and how many slots have room."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from hpsearch.errors import UserError
from hpsearch.executors import autoscaler
from hpsearch.executors.ray_cluster import HeadNode, Node
from hpsearch.study_file.models import Resources

log = logging.getLogger("hpsearch")


class SlotNeeds:
    """The CPUs and GPUs of one slot, on the cluster of `head`; raises UserError if no node of it
    has that, and none that its autoscaler could bring."""

    def __init__(self, resources: Resources, head: HeadNode) -> None:
        self._cpu = resources.cpu
        self._is_short = False
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

    def note_waiting(self, *, is_short: bool) -> None:
        """Say once that slots wait for room on the cluster, and once that they have it."""
        if is_short == self._is_short:
            return
        self._is_short = is_short
        if not is_short:
            log.warning("the cluster has room for the workers now")
            return
        by = "the autoscaler to bring" if self.has_autoscaler else "the cluster to have"
        log.warning("waiting for %s %s free for a worker", by, self)

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
