"""The autoscaler of a Ray cluster: whether there is one, and whether it could bring a worker's
resources.

Ray has no public call that says this. The head is asked as `ray status` asks it. The newer
autoscaler (KubeRay's) names the demands that no node it could start would meet. The older one (that
of `ray up`) is only known to be there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray._raylet import GcsClient  # type: ignore[attr-defined]  # its stub lacks it
from ray.core.generated.autoscaler_pb2 import GetClusterStatusReply
from ray.experimental.internal_kv import _internal_kv_get

ANSWER_S = 120.0  # how long an autoscaler may take to look at a demand; it looks every few seconds
LOOK_S = 0.5  # how often it is asked whether it has looked

_STATUS_OF_OLDER = b"__autoscaling_status"
_NOT_MANAGED = "node_"
"""The beginning of the names of node types where nobody but people starts nodes."""


def has_autoscaler() -> bool:
    """True if something starts nodes where the cluster lacks resources."""
    if _seen(_status()):
        return True
    status = _internal_kv_get(_STATUS_OF_OLDER)
    if status is None:
        return False
    report = json.loads(status).get("autoscaler_report") or {}
    return any(not kind.startswith(_NOT_MANAGED) for kind in report.get("active_nodes", ()))


def could_bring(resources: Mapping[str, float]) -> bool | None:
    """True if the autoscaler would start a node for these resources, or there is one. Returns None
    if it does not say."""
    demand = ray.util.placement_group([dict(resources)])
    try:
        return _answer(resources)
    finally:
        ray.util.remove_placement_group(demand)


def _answer(resources: Mapping[str, float]) -> bool | None:
    made_in = _status().cluster_resource_state.cluster_resource_state_version
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until:
        status = _status()
        if not _seen(status):
            return None
        if _seen(status) > made_in:
            return not _is_infeasible(resources, status)
        time.sleep(LOOK_S)
    return None


def _is_infeasible(resources: Mapping[str, float], status: Any) -> bool:
    for demand in status.autoscaling_state.infeasible_gang_resource_requests:
        if any(dict(each.resources_bundle) == resources for each in demand.requests):
            return True
    return False


def _seen(status: Any) -> int:
    version: int = status.autoscaling_state.last_seen_cluster_resource_state_version
    return version


def _status() -> Any:
    client = GcsClient(address=ray.get_runtime_context().gcs_address)
    reply = GetClusterStatusReply()
    reply.ParseFromString(client.get_cluster_status(timeout_s=10))
    return reply
