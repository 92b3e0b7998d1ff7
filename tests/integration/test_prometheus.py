"""A study that a real Prometheus watches while it runs."""

import json
import os
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.patience import wait_until
from support.running.programs import HPSEARCH

TASK = """
import time
from pathlib import Path


def train(params, trial):
    trial.report(1, {"loss": params["x"]})
    while not Path(__file__).with_name("seen").exists():
        time.sleep(0.05)
    trial.report(2, {"loss": params["x"]})
"""
STUDY = """
study: watched
task: {kind: "waits:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 1, gpu_hours: 1, per_trial: {epochs: 2}}
search: {sampler: random, pruner: none}
resources: {workers: 1, cpu: 1, gpu: 0}
"""
SCRAPE = """
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs: [{job_name: hpsearch, static_configs: [{targets: ["TARGET"]}]}]
"""

Query = Callable[[str], float | None]


@pytest.fixture
def study(
    tmp_path: Path, shared_ray: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A study that waits in the middle, and where its metrics are."""
    (tmp_path / "waits.py").write_text(TASK)
    (tmp_path / "study.yaml").write_text(STUDY)
    with subprocess.Popen(
        [HPSEARCH, "run", "study.yaml", "--metrics", "0"],
        cwd=tmp_path,
        env={**os.environ, **shared_ray},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stderr is not None
        said, url = running.stderr.readline().split("http://")
        assert said == "metrics at "
        yield running, url.removesuffix("/metrics\n")
        running.kill()


@pytest.fixture
def prometheus(tmp_path: Path, study: tuple[subprocess.Popen[str], str]) -> Iterator[Query]:
    """A Prometheus that reads these metrics, to ask for the value of an expression. Skips where it
    is not installed, unless HPSEARCH_TESTS_REQUIRE_PROMETHEUS=1 asks for a failure."""
    program = shutil.which("prometheus")
    if program is None:
        if os.environ.get("HPSEARCH_TESTS_REQUIRE_PROMETHEUS") == "1":
            pytest.fail("Prometheus is not installed")
        pytest.skip("Prometheus is not installed")
    config = tmp_path / "prometheus.yml"
    config.write_text(SCRAPE.replace("TARGET", study[1]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"

    def query(expression: str) -> float | None:
        words = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/query?{words}") as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:  # it starts
            return None
        return float(found[0]["value"][1]) if found else None

    options = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/tsdb"]
    with subprocess.Popen(
        [program, *options, f"--web.listen-address={address}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        yield query
        running.kill()


def test_a_prometheus_reads_a_study_while_it_runs(tmp_path, study, prometheus):
    wait_until(lambda: prometheus('hpsearch_reports_total{study="watched"}') == 1)
    wait_until(lambda: prometheus('hpsearch_trials{study="watched",state="running"}') == 1)
    assert prometheus("hpsearch_slots") == prometheus("hpsearch_slots_busy") == 1
    assert prometheus("hpsearch_gpu_seconds_budget") == 3600
    assert prometheus("hpsearch_gpu_seconds_spent") == 0
    best = prometheus('hpsearch_best_value{objective="loss"}')
    assert best is not None
    assert 0 < best < 1
    for what in ("decision", "commit"):
        taken = prometheus(f"hpsearch_{what}_seconds_count")
        assert taken is not None
        assert taken >= 1
        median = f"histogram_quantile(0.5, hpsearch_{what}_seconds_bucket)"
        assert (prometheus(median) or 0) > 0
    wait_until(lambda: prometheus("rate(hpsearch_reports_total[1m])") is not None)
    (tmp_path / "seen").touch()
    running, _ = study
    assert running.stderr is not None
    assert "study watched has ended" in running.stderr.read()
    assert running.wait() == 0
