"""A Ray that listens beyond this machine's loopback lets in only who has its token."""

import os
import subprocess
import sys

import pytest

from support.running.programs import run_program

KNOCK = """
import sys
from ray._raylet import GcsClient

client = GcsClient(address=sys.argv[1])
print(len(client.get_all_node_info()), "nodes")
"""

LOCAL = """
import sys
import ray
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.study_file.models import Resources

with cluster(None, Resources(workers=1)):
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
"""


def knock(address: str, **variables: str) -> str:
    """What somebody else's program hears from a Ray cluster when it asks for its nodes."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")
    }
    with subprocess.Popen(
        [sys.executable, "-c", KNOCK, address],
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        heard = ""
        for line in process.stdout:  # one that is refused tries again and again
            heard += line
            if "InvalidAuthToken" in line or "nodes" in line:
                break
        process.kill()
        return heard


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "variables",
    [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "guess" * 8}],
)
def test_a_local_ray_refuses_who_has_not_its_token(variables):
    with subprocess.Popen(
        [sys.executable, "-c", LOCAL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as study:
        assert study.stdout is not None
        address = study.stdout.readline().strip()
        refused, let_in = knock(address, **variables), knock(address, RAY_AUTH_MODE="token")
        study.communicate()
    assert "Authentication token is missing or incorrect" in refused
    assert "1 nodes" in let_in


@pytest.mark.thorough
def test_a_ray_that_asks_for_no_token_is_told():
    ended = run_program(
        [sys.executable, "-c", LOCAL],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        check=True,
    )
    assert (
        "this Ray does not ask for a token: anyone who can reach its ports can run code as you"
        in ended.stderr
    )
