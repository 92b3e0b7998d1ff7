"""Studies that are disturbed in every way there is, on a virtual clock: real brain, driver, store
and sweeper.

A `Plan` says what a study is, and a `Session` what befalls one of its drivers. A `World` holds what
is left of a study when a driver ends: its database, its folder of checkpoints, and what its workers
really did, for which it is charged.
"""

import math
import random
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from benchmarks.simulation.running import SimulatedExecutor, Straight, _Run
from hpsearch.brain.budget.ledger import Spending
from hpsearch.brain.reopening import reopen
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import Changes, History
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import StudyState, Trial
from hpsearch.errors import LeaseLost
from hpsearch.running.checkpoint_folders import folder_of_new
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import POLL_S, Driver, SteadyClock, watched_by
from hpsearch.running.driver.sweeping import Sweeper
from hpsearch.search.searcher import Searcher
from hpsearch.store.audit.invariants import violations
from hpsearch.store.leases import Lease
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Resources, StudyBudget, StudySpec
from support.studies.small import Bowl, spec_with
from trials.checkpoints.folders import trial_folder
from trials.contract import Diverged

EPOCHS = 9
PRICE = 2.0  # of an hour of a GPU


class Killed(BaseException):
    """The driver's process is gone: nothing of it runs any more, not even what cleans up."""


# ----------------------------------------------------------------------------------------------
# what is drawn


@dataclass(frozen=True)
class Plan:
    """A study."""

    seed: int
    trials: int | None
    gpu_seconds: float | None
    """What it may spend, where each slot is one GPU; a slot's share multiplies it."""
    share: float
    """Of a GPU, a slot's."""
    workers: int
    pruner: str | Mapping[str, Any]
    confirm: Mapping[str, int] | None
    spread: float
    """The standard deviation of the logarithm of how slow configurations are."""
    coarse: Mapping[str, int]
    """How rarely configurations report: every so many epochs, where x is below a half and above."""
    saves: str
    """each: a report names its own checkpoint. late: the one before. never: there are none."""
    diverges: float
    too_large: float
    """From where on x diverges, and from where on it runs out of memory."""
    enqueued: int
    default: bool
    in_money: bool = False  # what it may spend is stated as its price
    name: str = "random"

    def spec(self, more: int) -> StudySpec:
        """The study file, with its budget raised so many times."""
        budget: dict[str, Any] = {"per_trial": {"epochs": EPOCHS}}
        if self.trials is not None:
            budget["trials"] = self.trials + 5 * more
        if self.gpu_seconds is not None:
            hours = self.gpu_seconds * self.share * (1 + more) / 3600
            limit = {"cost": hours * PRICE, "cost_per_gpu_hour": PRICE}
            budget |= limit if self.in_money else {"gpu_hours": hours}
        search: dict[str, Any] = {"sampler": "random", "pruner": self.pruner}
        if self.confirm is not None:
            search["confirm"] = dict(self.confirm)
        enqueue = [{"x": (n + 1) / 8} for n in range(self.enqueued)]
        resources = {"gpu": self.share, "retries": 1000, "report_deadline": "1000000h"}
        parts = {"budget": budget, "search": search, "enqueue": enqueue, "resources": resources}
        return spec_with(study=self.name, seed=self.seed, **parts)


@dataclass(frozen=True)
class Session:
    """What befalls a driver of a study."""

    end: str
    """How it ends; one of ENDS."""
    after: int
    """At which of its ticks."""
    losses: tuple[float, ...] = ()
    """When it loses workers, in seconds from its beginning."""
    gap: float = 0.0
    """Seconds until the next one begins."""
    more: int = 0
    """How many times its budget is raised first."""
    broken: bool = False
    """Whether every trial raises an error under it."""
    clock_is_off: float = 0.0
    """How far the clock of its machine is from the true time, in seconds."""


ENDS = (
    *("killed", "killed after a commit", "killed between orders"),
    *("error", "interrupted", "abandoned", "usurped"),
)
"""Ways in which a driver ends before its study does."""

shares = st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0])
pruners = st.sampled_from(
    ["none", {"kind": "promotion", "eta": 3}, {"kind": "promotion", "eta": 2}, "median"]
)
confirms = st.none() | st.fixed_dictionaries({"top": st.integers(1, 3), "seeds": st.integers(1, 3)})
steps = st.sampled_from([1, 1, 2, 4, 5, 9])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Studies that end by their trials, by their GPU time, or by whichever comes first."""
    trials = draw(st.none() | st.integers(1, 12))
    seconds = draw(st.floats(60.0, 1500.0)) if trials is None or draw(st.booleans()) else None
    return Plan(
        seed=draw(st.integers(0, 10_000)),
        trials=trials,
        gpu_seconds=seconds,
        share=draw(shares),
        workers=draw(st.integers(1, 5)),
        pruner=draw(pruners),
        confirm=draw(confirms),
        spread=draw(st.sampled_from([0.0, 0.3, 1.5])),
        coarse={"below": draw(steps), "above": draw(steps)},
        saves=draw(st.sampled_from(["each", "each", "late", "never"])),
        diverges=draw(st.sampled_from([math.inf, 0.8])),
        too_large=draw(st.sampled_from([math.inf, 0.7])),
        enqueued=draw(st.integers(0, 2)),
        default=draw(st.booleans()),
        in_money=draw(st.booleans()),
    )


@st.composite
def sessions(draw: st.DrawFn) -> list[Session]:
    """Drivers of one study, the last of which brings it to its end; then perhaps more budget, and
    one more."""
    losses = st.lists(st.floats(0.0, 400.0), max_size=3).map(lambda moments: tuple(sorted(moments)))
    gaps = st.sampled_from([0.0, 1.0, 10_000.0])
    off = st.sampled_from([0.0, -5000.0, 5000.0])
    ends = st.sampled_from(ENDS)
    cut = st.builds(
        Session, ends, st.integers(0, 12), losses, gaps, st.integers(0, 1), clock_is_off=off
    )
    broken = (
        st.just([Session("end", 0, gap=5.0, broken=True)])
        if draw(st.integers(0, 3)) == 0
        else st.just([])
    )
    found = [*draw(broken), *draw(st.lists(cut, max_size=4)), Session("end", 0, draw(losses))]
    if draw(st.booleans()):
        found += [Session("end", 0, draw(losses), more=1)]
    return found


# -------------------------------------------------------------------------------------------------
# the workers


@dataclass
class Hills(Bowl):
    """Curves of configurations that differ in speed, and of which some fail."""

    plan: Plan | None = None

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        assert self.plan is not None
        factor = math.exp(
            random.Random(f"{self.plan.seed} {params['x']}").gauss(0.0, self.plan.spread)
        )
        return super().seconds(params, resource) * factor

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        assert self.plan is not None
        if params["x"] > self.plan.diverges:
            raise Diverged(f"the loss is not finite at {resource:g}")
        noise = random.Random(f"{seed}").gauss(0.0, 0.01)
        return {"loss": super().measure(params, seed, resource)["loss"] + noise}


class Workers(Straight):
    """Slots whose trials report rarely, save late or not at all, fail, and do not listen; their
    checkpoints are files.

    Args:
        plan: The study.
        spec: Its file.
        folder: Of its checkpoints.
        session: What befalls them.
        now: The time at which they are there.
    """

    def __init__(
        self, plan: Plan, spec: StudySpec, folder: Path, session: Session, now: float
    ) -> None:
        losses = [now + moment for moment in session.losses]
        super().__init__(Hills(plan=plan), trial_budget(spec), plan.workers, plan.share, losses)
        self.now = now
        self.held: dict[tuple[int, int], tuple[float, float | None]] = {}
        """When each attempt got its slot, and when it left it."""
        self._plan, self._folder, self._broken = plan, folder, session.broken
        self._deaf = session.end == "abandoned"
        self._silent: set[tuple[int, int]] = set()  # they train on, and are heard of no more
        self._newest: dict[int, str] = {}
        self._writes = True

    def launch(self, order: ev.Launch) -> None:
        assert (order.trial, order.attempt) not in self.held, "an attempt is launched once"
        super().launch(order)
        self.held[order.trial, order.attempt] = (self.now, None)

    def stop(self, order: ev.Stop) -> None:
        key = (order.trial, order.attempt)
        if self._deaf and order.save and self._runs.pop(key, None) is not None:
            self._silent.add(key)
        self._writes = order.save
        super().stop(order)
        self._writes = True
        self._note_who_left()

    def poll(self, timeout_s: float) -> list[ev.Event]:
        straight = not self._silent  # who waits for the silent gives up at some moment
        events = super().poll(timeout_s) if straight else SimulatedExecutor.poll(self, timeout_s)
        self._note_who_left()
        return events

    def _note_who_left(self) -> None:
        for key, (came, left) in self.held.items():
            if left is None and key not in self._runs and key not in self._silent:
                self.held[key] = (came, self.now)

    def _report(self, run: _Run, level: float) -> None:
        key = run.key
        if self._broken:
            self._end(key, ev.Failed(*key, ErrorKind.ERROR, "FileNotFoundError: data/train.csv"))
        elif run.order.params["x"] > self._plan.too_large:
            self._end(key, ev.Failed(*key, ErrorKind.OUT_OF_MEMORY, "no room for a batch of one"))
        else:
            super()._report(run, level)

    def _next_level(self, run: _Run) -> float | None:
        every = self._plan.coarse["below" if run.order.params["x"] < 0.5 else "above"]
        if run.resource >= EPOCHS:
            return None
        return min(EPOCHS, math.floor(run.resource / every + 1) * every)

    def _save(self, run: _Run) -> str | None:
        if self._plan.saves == "never" or not run.resource:
            return None
        number = run.order.trial
        if not self._writes:
            return self._newest.get(number)
        path = self._folder / trial_folder(number) / f"{run.resource:g}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{run.resource}")
        before, self._newest[number] = self._newest.get(number, run.order.resume_from), str(path)
        late = self._plan.saves == "late" and run.resource < run.until
        return before if late else str(path)

    def _remove(self, trial: int, checkpoint: str) -> None:
        # The driver sweeps after its commit, and may have removed it: the trial may have ended.
        Path(checkpoint).unlink(missing_ok=True)

    def _resource_of(self, checkpoint: str) -> float:
        return float(Path(checkpoint).read_text())


# -------------------------------------------------------------------------------------------------
# the world


@dataclass
class World:
    """A study and everything that is left of it between its drivers."""

    plan: Plan
    store: Store
    root: Path
    """Where the folders of several studies may be."""
    now: float = 1000.0
    budgets: int = 0
    """How many times its budget was raised."""
    owed: float = 0.0
    """GPU-seconds that its attempts held their slots, as far as a driver lived to see it."""
    unheeded: float = 0.0
    """GPU-seconds that workers may have trained on after they were told to stop: nobody can keep
    them from it."""
    end: History = field(init=False)
    """What it came to."""
    _seen: float | None = None
    """When a driver was last known to live."""

    def __post_init__(self) -> None:
        self._specs = {0: self.plan.spec(0)}
        self.home = folder_of_new(self._specs[0], str(self.root))
        created = create_study(self.store, self._specs[0], self.home.folder, self.home.mark.uid)
        self.name = created.study.name
        self.home.claim()

    @property
    def folder(self) -> Path:
        """The study's own, for its checkpoints."""
        return Path(self.home.folder)

    @property
    def history(self) -> History:
        return self.store.load(self.name)

    def go_through(self, session: Session) -> None:
        """Let a driver take the study up, and end as the session says."""
        self.budgets += session.more
        if session.end == "abandoned":
            self.unheeded += (
                (Resources().stop_grace_s + POLL_S) * self.plan.workers * self.plan.share
            )
        if self.budgets not in self._specs:
            self._specs[self.budgets] = self.plan.spec(self.budgets)
        spec = self._specs[self.budgets]
        history = self.store.load(self.name)
        if history.study.state is StudyState.FINISHED and not session.more:
            return
        history.study.spec = spec.text
        workers = Workers(self.plan, spec, self.folder, session, self.now)
        lease = self._take_up(history)
        study = self._brain(spec, history)
        visit = _Visit(self, session, study, workers, lease)
        clock = SteadyClock(
            lease.alive_at, lambda: workers.now + session.clock_is_off, lambda: workers.now
        )
        poll_s = POLL_S if session.end == "abandoned" else math.inf
        with closing(Sweeper(self.home)) as sweeper:
            sweeper.begin(history.trials)
            watch = watched_by(sweeper.watch, visit.watch)
            driver = visit.drive(
                Driver(study, visit, self.store, lease, watch, clock, poll_s=poll_s)
            )
            try:
                driver.run()
            except (Killed, RuntimeError, LeaseLost):
                self._seen = driver.journal.written - (clock() - workers.now)
            else:
                self._seen = workers.now
        self._charge(workers)
        self.now = workers.now + session.gap
        if session.end == "error":
            self.store.release(lease)
        self._look(history, session)

    def _take_up(self, history: History) -> Lease:
        """A lease, and when the driver before was last known to live."""
        before = self.store.holder(self.name)
        if before is not None:
            self.store.release(before)
        return self.store.acquire(history.study.id, "driver", LEASE_TTL_S)

    def _brain(self, spec: StudySpec, history: History) -> Study:
        reopen(history)
        storage = HistoryStorage(history)
        defaults = {"x": 0.6} if self.plan.default else None
        return Study(spec, history, Searcher(spec, history, storage), defaults)

    def _charge(self, workers: Workers) -> None:
        """Add up how long attempts held their slots, until their driver was last known to live."""
        assert self._seen is not None
        for came, left in workers.held.values():
            until = self._seen if left is None else min(left, self._seen)
            self.owed += max(0.0, until - came) * self.plan.share

    def _look(self, history: History, session: Session) -> None:
        """What must hold whenever a driver has ended."""
        if session.end.startswith("killed") or history.study.state is not StudyState.RUNNING:
            with self.store.reading() as connection:
                assert violations(connection) == []
        if session.end in ("end", "interrupted", "abandoned"):
            assert self.history.trials == history.trials


class _Visit:
    """One driver's time: an executor that ends the driver when it is due, and a watch that checks
    every tick."""

    def __init__(
        self, world: World, session: Session, study: Study, workers: Workers, lease: Lease
    ) -> None:
        self._world, self._session, self._study = world, session, study
        self._workers, self._lease = workers, lease
        self._driver: Driver | None = None
        self._polls = self._ticks = 0
        self._race_begun = False

    def drive(self, driver: Driver) -> Driver:
        self._driver = driver
        return driver

    @property
    def _due(self) -> bool:
        return self._polls > self._session.after

    # the executor

    def launch(self, order: ev.Launch) -> None:
        self._workers.launch(order)
        self._check_what_starts((order.trial, order.attempt))
        if self._session.end == "killed between orders" and self._due:
            raise Killed

    def advance(self, order: ev.Advance) -> None:
        self._workers.advance(order)

    def stop(self, order: ev.Stop) -> None:
        self._workers.stop(order)

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        self._workers.recorded(trial, attempt, resource)

    def poll(self, timeout_s: float) -> list[ev.Event]:
        events = self._workers.poll(timeout_s)
        self._polls += 1
        end = self._session.end if self._polls == self._session.after + 1 else ""
        if end == "killed":
            raise Killed
        if end == "error":
            raise RuntimeError("the cluster is gone")
        if end in ("interrupted", "abandoned"):
            assert self._driver is not None
            self._driver.request_stop()
        if end == "usurped":
            store = self._world.store
            store.release(self._lease)
            store.acquire(self._lease.study_id, "another driver", LEASE_TTL_S)
        return events

    # the watch

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        self._ticks += 1
        self._check_the_books(study, now)
        self._check_the_race(study, changes)
        if self._session.end == "killed after a commit" and self._due:
            raise Killed

    def _check_the_books(self, study: Study, now: float) -> None:
        ledger = study.spending.ledger
        reserved = sum(ledger.reserved.values())
        if ledger.whole(None) is not None:
            limit = ledger.whole(None) * (1 + 1e-9) + self._world.unheeded
            assert ledger.spent + reserved <= limit, "more is promised than there is"
        assert set(ledger.reserved) == {
            (live.attempt.trial, live.attempt.number) for live in study.running.values()
        }
        if self._ticks % 5 == 0:
            assert_same_books(study, self._world.plan.share)

    def _check_what_starts(self, key: tuple[int, int]) -> None:
        """What has been held by the clock of the workers, and what is set aside on record for those
        that have not ended, is within the limit at the moment at which an attempt starts."""
        world, workers = self._world, self._workers
        limit_s = limit_of(self._study.spec.budget)
        with world.store.reading() as connection:
            live = {
                (trial, number): (amount, first)
                for trial, number, amount, first in connection.exec_driver_sql(
                    "SELECT trial, number, reserved_gpu_seconds, first_reserved_gpu_seconds"
                    " FROM attempts WHERE ended IS NULL"
                )
            }
        amount, first = live[key]
        assert amount == first, "what was set aside at first is on record"
        if limit_s is None:
            return
        held = {
            each: ((workers.now if left is None else left) - came) * world.plan.share
            for each, (came, left) in workers.held.items()
        }
        ended = sum(seconds for each, seconds in held.items() if each not in live)
        promised = sum(max(amount, held.get(each, 0.0)) for each, (amount, _) in live.items())
        assert world.owed + ended + promised <= limit_s * (1 + 1e-9) + world.unheeded, (
            f"attempt {key[1]} of trial {key[0]} starts beyond the limit"
        )

    def _check_the_race(self, study: Study, changes: Changes) -> None:
        trials = study.history.trials
        begun_before = self._race_begun
        self._race_begun = study.phase is Phase.CONFIRMING
        if begun_before and self._race_begun:
            begun = [
                d
                for d in changes.decisions
                if d.kind in ("start", "promote") and trials[d.trial].role is not Role.CONFIRM
            ]
            assert not begun, "the search goes on beside the race"


def limit_of(budget: StudyBudget) -> float | None:
    """GPU-seconds that a study of one type of device may spend; None without a limit."""
    limits = [] if budget.gpu_hours is None else [budget.gpu_hours * 3600]
    if budget.cost is not None:
        assert isinstance(budget.cost_per_gpu_hour, float)
        limits.append(budget.cost / budget.cost_per_gpu_hour * 3600)
    return min(limits, default=None)


def assert_same_books(study: Study, share: float) -> None:
    """What a driver that took the study up now would know of its costs is what this one knows."""
    books, rebuilt = study.spending, Spending(study.spec.budget, study.history)
    rebuilt.ledger.reserved.update(books.ledger.reserved)
    assert rebuilt.ledger.spent == pytest.approx(books.ledger.spent)
    assert rebuilt.ledger.whole(None) == books.ledger.whole(None)
    assert rebuilt.ledger.paid == pytest.approx(books.ledger.paid)
    devices = {slot.device for slot in study.slots.values()}
    for device in (None, *devices):
        again, before = rebuilt.paces.mean(device), books.paces.mean(device)
        assert again == (before if before is None else pytest.approx(before))
        need = books.need(1.0, share, 3, device=device)
        assert rebuilt.need(1.0, share, 3, device=device) == pytest.approx(need)


def searched(history: History) -> list[Trial]:
    return [trial for trial in history.trials if trial.role is not Role.CONFIRM]
