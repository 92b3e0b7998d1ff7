"""Several processes ask one study, on both databases, and one of them is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

import hpsearch
from hpsearch.domain.records import Outcome, StudyState, Trial
from hpsearch.store import heartbeats
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support import thoroughness
from support.patience import wait_until
from support.studies.asked import spec_with, train, work

TRIALS = 30
SPEC = spec_with(budget={"trials": TRIALS, "per_trial": {"epochs": 9}})
WORKER = """
import sys, time
import hpsearch
from support.studies.asked import train, work
url, spec, hangs = sys.argv[1], eval(sys.argv[2]), sys.argv[3] == "hangs"
with hpsearch.create(url, spec) as study:
    if hangs:
        trial = study.ask()
        print(trial.number, flush=True)
        time.sleep(600)
    print("asks", flush=True)
    if sys.argv[3] == "tells":
        while (trial := study.ask()) is not None:
            print(trial.number, flush=True)
            train(trial)
            study.tell(trial)
    print(work(study), flush=True)
"""


@contextmanager
def worker(url: str, does: str) -> Iterator[subprocess.Popen[str]]:
    paths = os.pathsep.join(path for path in sys.path if path)
    program = [sys.executable, "-c", WORKER, url, repr(SPEC), does]
    env = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def test_processes_share_a_study_and_one_that_is_killed_costs_one_attempt(database_url):
    with hpsearch.create(database_url, SPEC) as study, ExitStack() as processes:
        held = study.ask()
        assert held is not None
        # Before the other one, which may leave it nothing to ask for.
        victim = processes.enter_context(worker(database_url, "hangs"))
        assert victim.stdout is not None
        lost = int(victim.stdout.readline())
        other = processes.enter_context(worker(database_url, "works"))
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        killed = time.time()
        assert other.stdout is not None
        assert other.stdout.readline() == "asks\n"
        before = heard(database_url, held.number)
        # which is what keeps the trial ours
        wait_until(lambda: heard(database_url, held.number) != before)
        train(held)
        mine = work(study)
        theirs = int(other.stdout.readline())
    trials = ended(database_url)
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    assert [each.trial for each in attempts if each.outcome is Outcome.LOST] == [lost]
    assert len(attempts) == mine + theirs + 2
    died = trials[lost].attempts[0]
    assert "has died" in (died.note or "") or "no sign of life" in (died.note or "")
    assert died.ended is not None
    assert died.ended <= killed + 0.1
    assert died.gpu_seconds == pytest.approx(died.ended - died.started)
    assert trials[lost].attempts[1].outcome is not Outcome.LOST


@pytest.mark.thorough
def test_processes_that_are_killed_at_any_moment_leave_a_study_that_goes_on(database_url):
    with worker(database_url, "hangs") as holder:
        assert holder.stdout is not None
        lost = int(holder.stdout.readline())
    for asked in ((1, 3), (2, 5))[: 1 if thoroughness.quick else 2]:
        with ExitStack() as processes:
            victims = [processes.enter_context(worker(database_url, "tells")) for _ in asked]
            for victim, trials in zip(victims, asked, strict=True):
                assert victim.stdout is not None
                for _ in range(trials):
                    victim.stdout.readline()
                os.kill(victim.pid, signal.SIGKILL)
                victim.wait()
                with closing(Store.open(database_url)) as store, store.reading() as connection:
                    assert violations(connection) == []
    with hpsearch.create(database_url, SPEC) as study:
        work(study)
    assert ended(database_url)[lost].attempts[0].outcome is Outcome.LOST


def heard(url: str, trial: int) -> float:
    """When the process that has a trial gave its last sign of life."""
    with closing(Store.open(url)) as store, store.reading() as connection:
        beats = heartbeats.read(connection, 1)
    return next(beat.renewed for beat in beats if beat.trial == trial)


def ended(url: str) -> list[Trial]:
    """The trials of the study, which has ended as it should."""
    with closing(Store.open(url)) as store:
        history = store.load("asked")
        with store.reading() as connection:
            assert violations(connection) == []
            assert heartbeats.read(connection, history.study.id) == []
    assert history.study.state is StudyState.FINISHED
    assert len(history.trials) == TRIALS
    return history.trials
