"""What tests of whole commands share: one Ray for all that need some Ray, and none of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

RAY = """
import ray, sys
context = ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
print(context.address_info["address"], flush=True)
sys.stdin.read()
"""
"""A local Ray with a token, as `hpsearch run` starts it; it ends when nobody holds its input open
any more."""


@pytest.fixture(scope="session")
def shared_ray() -> Iterator[dict[str, str]]:
    """The environment in which commands join a Ray that runs as long as the tests do.

    In a process of its own: this one may start another, or join one.
    """
    started = subprocess.Popen(
        [sys.executable, "-c", RAY],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with started:
        assert started.stdout is not None
        address = started.stdout.readline().strip()
        assert address, "no Ray could be started"
        yield {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "token"}
        started.communicate()
