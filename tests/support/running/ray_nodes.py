"""Ray clusters of several nodes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

from ray.cluster_utils import Cluster

from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.study_file.models import Resources


@contextmanager
def two_nodes(head_cpus: int = 1) -> Iterator[Cluster]:
    """Two nodes, of which the second has one CPU; this process is part of the cluster."""
    head = {"num_cpus": head_cpus, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        made.add_node(num_cpus=1)
        with cluster(made.address, Resources()):
            yield made
    finally:
        made.shutdown()
