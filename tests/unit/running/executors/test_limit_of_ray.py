"""Ray's own limit for a head that is gone, which it reads once, on import."""

import os
import sys

from support.running.programs import run_program

NAME = "RAY_gcs_rpc_server_reconnect_timeout_s"
PROGRAM = f"""
import os
import sys

import hpsearch.running.executors

assert "ray" not in sys.modules
print(os.environ["{NAME}"])
"""


def test_the_limit_of_ray_is_set_before_ray_is_imported():
    environment = {name: value for name, value in os.environ.items() if name != NAME}
    done = run_program([sys.executable, "-c", PROGRAM], env=environment, check=True)
    assert int(done.stdout) > 3600
