"""The resources that one slot takes of a Ray cluster, and the slots that have room.

Where slots share GPUs, what is reserved is a whole GPU, with cores for all slots that it may have.
"""

import logging
import math
from collections.abc import Iterable, Mapping

import ray

from hpsearch.domain.facts import MOST_ON_A_GPU
from hpsearch.errors import Unusable, UserError
from hpsearch.running.executors.cluster.ray_cluster import HeadNode
from hpsearch.running.executors.cluster.ray_private import has_autoscaler
from hpsearch.study_file.models import Resources
from hpsearch.study_file.types import SHARE
from trials.devices.gpu import ON_CPUS

BRING_S = 600.0  # seconds in which an autoscaler must bring the first GPU where `gpu` is auto
MOST_REFUSALS = 3  # of nodes that an autoscaler brings, after which it is not asked for more

log = logging.getLogger("hpsearch")


class SlotNeeds:
    """The CPUs and GPUs of each process of a slot, on the cluster of `head`; raises UserError if
    its nodes do not have that, and no autoscaler could bring them."""

    def __init__(self, resources: Resources, head: HeadNode) -> None:
        self._cpu = resources.cpu
        self._processes = resources.processes
        self._is_short = False
        self._refused: set[str] = set()  # nodes whose GPUs cannot be used, by their id
        self._refusals = 0  # of workers, where no other node had room
        head.await_node(unless=has_autoscaler)  # which is heard of some seconds after its head
        self.has_autoscaler = has_autoscaler()
        self.gpus = self._gpus_a_slot(resources, head)
        self.shares_gpus = resources.gpu == SHARE and self.gpus > 0
        self.most = self._most_on_a_gpu(resources, head) if self.shares_gpus else 1
        self._cpu *= self.most
        self.takes = {"CPU": self._cpu, "GPU": self.gpus}
        if not self.gpus:
            del self.takes["GPU"]
        if not isinstance(resources.workers, int) and not self.has_autoscaler:
            self._refuse_too_large(node.resources for node in head.staying)

    def __str__(self) -> str:
        each = f"{self._cpu:g} CPU and {self.gpus:g} GPU"
        return each if self._processes == 1 else f"{self._processes} times {each}"

    def fitting(self, nodes: Iterable[Mapping[str, float]]) -> int:
        """The number of slots that fit into nodes; the processes of one may be on several."""
        return sum(map(self._fitting_processes, nodes)) // self._processes

    def _fitting_processes(self, has: Mapping[str, float]) -> int:
        by_cpu = has.get("CPU", 0.0) / self._cpu
        if not self.gpus:
            return int(by_cpu)
        by_gpu = has.get("GPU", 0.0) / self.gpus
        return int(min(by_cpu, by_gpu))

    def refuse(self, faults: Mapping[str, str], head: HeadNode) -> None:
        """Run no more on nodes whose GPUs torch cannot use; `faults` say why, by the node's id.
        Raises Unusable if the others have no room for a slot."""
        for node, fault in faults.items():
            if node not in self._refused:
                self._refused.add(node)
                log.warning("node %s is not used: %s", head.nodes[node].address, fault)
            head.avoided[node] = math.inf
        staying = [node for node in head.nodes if head.stays(node) and node not in self._refused]
        if self.fitting(head.nodes[node].resources for node in staying):
            return
        self._refusals += 1
        if self.has_autoscaler and self._refusals < MOST_REFUSALS:
            return
        node, fault = next(iter(faults.items()))
        where = f"node {head.nodes[node].address}"
        raise Unusable(f"no node has a GPU that can be used; {where}: {fault}", ON_CPUS)

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
        if not isinstance(resources.gpu, str):
            return resources.gpu
        if any(node.resources.get("GPU") for node in head.staying):
            return 1.0
        if not self.has_autoscaler:
            return 0.0
        if not self._bring_gpu():
            raise UserError(
                f"the cluster has no GPU, and its autoscaler brought none in {BRING_S:.0f} s",
                "set resources.gpu in the study file: 1 to wait for one, or 0 to train on CPUs",
            )
        return 1.0

    def _most_on_a_gpu(self, resources: Resources, head: HeadNode) -> int:
        """The slots that may share a GPU, by the cores beside each and the number of workers."""
        most = resources.workers if isinstance(resources.workers, int) else MOST_ON_A_GPU
        for node in head.staying:
            if gpus := node.resources.get("GPU"):
                most = min(most, int(node.resources.get("CPU", 0.0) / gpus / resources.cpu))
        return max(1, min(most, MOST_ON_A_GPU))

    def _bring_gpu(self) -> bool:
        log.warning("no node has a GPU yet: asking the autoscaler for one (resources.gpu is auto)")
        group = ray.util.placement_group([{"CPU": self._cpu, "GPU": 1.0}])
        try:
            return bool(group.wait(BRING_S))
        finally:
            ray.util.remove_placement_group(group)

    def _refuse_too_large(self, nodes: Iterable[Mapping[str, float]]) -> None:
        if self.fitting(nodes):
            return
        where, keys = "no node of the cluster has", "resources.cpu or resources.gpu"
        if self._processes > 1:
            where, keys = "the nodes of the cluster do not have", "resources.processes, cpu or gpu"
        raise UserError(
            f"{where} the {self} that a worker takes", f"lower {keys} in the study file"
        )
