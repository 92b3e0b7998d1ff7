"""What is used of Ray that is not public, with the reason for each. A new release may change it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import ray
from ray._private import services
from ray._private import utils as ray_utils
from ray._private.state import state
from ray._raylet import GcsClient  # type: ignore[attr-defined]  # its stub lacks it
from ray.core.generated.autoscaler_pb2 import GetClusterStatusReply
from ray.experimental.internal_kv import _internal_kv_get
from ray.job_config import JobConfig

_STATUS_OF_OLDER = b"__autoscaling_status"
_NOT_MANAGED = "node_"
"""The beginning of the names of node types where nobody but people starts nodes."""


@contextmanager
def apart() -> Iterator[None]:
    """Start processes of Ray in groups of their own meanwhile: a signal for the group of this
    process, as of a terminal that is closed or of `timeout`, would end them before trials have
    saved. `ray.init` cannot do so, and `ray start` serves, and tells, the whole machine."""
    start = services.ConsolePopen
    services.ConsolePopen = partial(start, process_group=0)
    try:
        yield
    finally:
        services.ConsolePopen = start


@contextmanager
def unnamed() -> Iterator[None]:
    """Keep the command line from Ray, which would show it as that of the job: `--storage` and
    `--notify` may have passwords. Ray reads it from the system."""
    command_line = ray_utils.get_entrypoint_name
    ray_utils.get_entrypoint_name = lambda: "hpsearch"
    try:
        yield
    finally:
        ray_utils.get_entrypoint_name = command_line


class WithoutFolders(JobConfig):  # type: ignore[misc] # Ray's has no types
    """The configuration of a job whose workers import what is installed. Ray would let them look in
    the driver's folders before, unless it copied a folder to each of them."""

    def _serialize(self) -> bytes:
        self._py_driver_sys_path.clear()
        self._cached_pb = None
        serialized: bytes = super()._serialize()
        return serialized


def draining() -> set[str]:
    """The ids of the nodes that are being drained. Ray's public call needs its dashboard."""
    return set(state.get_draining_nodes())


def free_by_node() -> Mapping[str, Mapping[str, float]]:
    """The free resources of each node, by its id. Ray's public call has the sum of all nodes."""
    free: Mapping[str, Mapping[str, float]] = state.available_resources_per_node()
    return free


def has_autoscaler() -> bool:
    """True if something starts nodes where the cluster lacks resources, asked for as `ray status`
    does. KubeRay's has seen a version of the cluster's state; that of `ray up` leaves a report."""
    client = GcsClient(address=ray.get_runtime_context().gcs_address)
    reply = GetClusterStatusReply()
    reply.ParseFromString(client.get_cluster_status(timeout_s=10))
    if reply.autoscaling_state.last_seen_cluster_resource_state_version:
        return True
    status = _internal_kv_get(_STATUS_OF_OLDER)
    if status is None:
        return False
    report = json.loads(status).get("autoscaler_report") or {}
    return any(not kind.startswith(_NOT_MANAGED) for kind in report.get("active_nodes", ()))
