"""How large the page on a large study is, how long it takes to make, and how soon it is open.

    python benchmarks/report_page.py [--trials N] [--quick] [--keep FILE] [--json FILE]

A study of 10,000 trials with 20 parameters and nine reports each, most of them paused early, is
written to a database in a temporary folder. `hpsearch report` makes its page, and a headless
Chromium opens it: `painted` is when the first text can be read, `loaded` when the page answers, and
`drawn` when the last chart is there, all in seconds since the browser asked for the page, as it
measures them itself. Without Chromium these are left out. `live_first_s` and `live_report_s` are
the answers of `hpsearch dashboard` to who opens the study: its page, and the report that follows,
the first the median of several requests.
"""

from __future__ import annotations

import argparse
import math
import queue
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, ReportRecord, StudyRecord, StudyState, Trial
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.views.report.data import report_data
from hpsearch.views.report.page import html_report, markdown_report
from tables import show

PARAMETERS = 20
EPOCHS = 27
LEVELS = (1, 2, 3, 6, 9, 12, 18, 24, 27)
WORKERS = 16
BEGAN = 1_790_000_000.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60.0
REQUESTS = 5

MEASURE = """
<script>
new MutationObserver(() => {
  const timing = performance.timing;
  const paints = performance.getEntriesByType("paint");
  const told = [
    paints.length ? paints[paints.length - 1].startTime : 0,
    timing.loadEventEnd - timing.navigationStart,
    performance.now(),
  ];
  fetch("/told?" + told.join(","));
}).observe(document.documentElement, {attributes: true, attributeFilter: ["data-charts"]});
</script>
"""


def spec() -> str:
    """The study file."""
    space: dict[str, Any] = {}
    for n in range(PARAMETERS):
        kinds: list[dict[str, Any]] = [
            {"type": "float", "low": 1e-5, "high": 1e-1, "log": True},
            {"type": "float", "low": 0.0, "high": 1.0},
            {"type": "categorical", "choices": ["adamw", "adam", "sgd", "muon"]},
        ]
        space[f"parameter_{n}"] = kinds[n % 3]
    written = {
        "study": "large",
        "task": {"kind": "own_code:train"},
        "space": space,
        "objective": {"metric": "accuracy", "direction": "maximize"},
        "budget": {"trials": 100_000, "per_trial": {"epochs": EPOCHS}},
    }
    return yaml.safe_dump(written, sort_keys=False)


def drawn(chance: random.Random) -> dict[str, Any]:
    """A configuration."""
    params: dict[str, Any] = {}
    for n in range(PARAMETERS):
        values = (
            10 ** chance.uniform(-5, -1),
            chance.random(),
            chance.choice(["adamw", "adam", "sgd", "muon"]),
        )
        params[f"parameter_{n}"] = values[n % 3]
    return params


def trial_of(number: int, chance: random.Random, begin: float, worker: str) -> Trial:
    """A trial with its attempt and its reports."""
    params = drawn(chance)
    ending = chance.random()
    far = math.log10(params["parameter_0"]) + 3
    value = 0.95 - 0.05 * far**2 - 0.1 * params["parameter_1"] + chance.gauss(0, 0.01)
    reached = EPOCHS if ending < 0.12 else chance.choice(LEVELS[2:6])
    state = State.COMPLETE if ending < 0.12 else State.PRUNED
    if ending > 0.97:
        state = State.FAILED
    seconds = 3.0 + reached
    made = Trial(number, state, params, value=value, resource=float(reached), created=begin)
    made.gpu_seconds, made.started, made.ended = seconds, begin, begin + seconds
    attempt = Attempt(number, 1, worker, begin, ended=begin + seconds, gpu_seconds=seconds)
    attempt.outcome, attempt.start_up_seconds = Outcome(state.value), 0.5
    made.attempts = [attempt]
    if state is State.FAILED:
        made.error_kind, made.error_text = ErrorKind.DIVERGED, "the loss is not finite"
    for level in (level for level in LEVELS if level <= reached):
        shown = value - 0.3 * math.exp(-level / 5)
        made.reports[float(level)] = ReportRecord(
            number, float(level), shown, {"accuracy": shown}, 1, level, level, begin + 3.0 + level
        )
        made.value = shown
    return made


def write_study(url: str, trials: int) -> None:
    """Write the study to a database."""
    chance = random.Random(1)
    free = [BEGAN] * WORKERS
    made = []
    for number in range(trials):
        slot = min(range(WORKERS), key=free.__getitem__)
        trial = trial_of(number, chance, free[slot], f"w{slot}")
        free[slot] += trial.gpu_seconds + 0.2
        made.append(trial)
    with closing(Store.open(url)) as store:
        record = StudyRecord(0, "large", spec(), ("maximize",), StudyState.FINISHED, "done", BEGAN)
        store.create_study(record)
        attempts = [attempt for trial in made for attempt in trial.attempts]
        reports = [report for trial in made for report in trial.reports.values()]
        store.commit(record.id, Changes(trials=made, attempts=attempts, reports=reports))


class Served(BaseHTTPRequestHandler):
    """Serves one page, and takes what it tells of itself."""

    page = b""
    told: queue.Queue[str]

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/told":
            self.told.put(query)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.page if path == "/" else b"")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def opened(page: str, folder: Path) -> dict[str, float | None]:
    """Seconds until a browser has painted, loaded and drawn a page."""
    names = ("painted_s", "loaded_s", "drawn_s")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return dict.fromkeys(names)
    # The page lets no script run but its own, and asks nobody: the copy that is measured may.
    measured = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, count=1)
    Served.page = measured.replace("<body>", "<body>" + MEASURE, 1).encode()
    Served.told = queue.Queue()
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    options += [f"--user-data-dir={folder / 'profile'}", "--window-size=1200,900"]
    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        command = [browser, *options, "--remote-debugging-port=0", address]
        silent = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=silent, stderr=silent) as started:
            try:
                told = Served.told.get(timeout=PATIENCE_S)
            finally:
                started.terminate()
        server.shutdown()
    seconds = [float(each) / 1000 for each in told.split(",")]
    return dict(zip(names, seconds, strict=True))


def live(url: str) -> dict[str, float]:
    """Seconds until the dashboard has answered with a study's page, and with its report."""
    program = "from hpsearch.cli.main import main; main()"
    call = [sys.executable, "-c", program, "dashboard", "large", "--port", "0", "--storage", url]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            link = re.match(r"http://\S+", next(iter(server.stderr), ""))
            assert link is not None, "hpsearch dashboard did not start"
            report = _seconds(f"{link[0]}/report")
            firsts = [_seconds(link[0]) for _ in range(REQUESTS)]
        finally:
            server.kill()
    return {"live_first_s": statistics.median(firsts), "live_report_s": report}


def _seconds(address: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        answer.read()
    return time.perf_counter() - began


def measured(trials: int, keep: Path | None) -> dict[str, Any]:
    """A row: a study of so many trials."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = f"sqlite:///{folder}/study.db"
        write_study(url, trials)
        began = time.perf_counter()
        with closing(Store.open(url)) as store, store.reading() as connection:
            data = report_data(connection, find_study(connection, "large"), time.time())
        read = time.perf_counter()
        page = html_report(data)
        made = time.perf_counter()
        text = markdown_report(data)
        if keep is not None:
            keep.write_text(page, "utf-8")
        return {
            "trials": trials,
            "read_s": read - began,
            "page_s": made - read,
            "page_MB": len(page.encode()) / 1e6,
            "markdown_kB": len(text.encode()) / 1e3,
            **opened(page, folder),
            **live(url),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="300 trials")
    parser.add_argument("--keep", type=Path, help="where to write the largest page")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    most = 300 if arguments.quick else arguments.trials
    sizes = sorted({30, most // 10, most})
    rows = [measured(trials, arguments.keep if trials == most else None) for trials in sizes]
    show("the page on a study", rows, arguments.json)


if __name__ == "__main__":
    main()
