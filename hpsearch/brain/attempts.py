"""Workers and running attempts, and the nodes that are set aside: known only while a driver runs.

An attempt holds a slot, and a reservation in the ledger, from its launch to its end.

A node is set aside once `IN_A_ROW` attempts in a row have failed there by an error or a lost
worker, as long as the last attempt on some other node has not. After `FIRST_S` seconds it is tried
again, and the next failure sets it aside for twice as long as the time before. A report clears it.
The last node that works is never set aside. Failures of that row count against no trial: other
nodes run them.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from hpsearch.brain.budget.ledger import ChargeRate, Key, Spending
from hpsearch.domain import events as ev
from hpsearch.domain.facts import SHARING
from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt, Outcome, Trial, kept_before
from hpsearch.domain.sharing import Sharing
from hpsearch.study_file.models import StudySpec
from trials.contract import Code

GRACE_S = 30.0
"""Seconds past an attempt's time limit in which its worker may enforce the limit itself."""
IN_A_ROW = 3
FIRST_S = 300.0
LONGEST_S = 6 * 3600.0


@dataclass
class Slot:
    """A worker."""

    name: str
    node: str
    device: str
    gpus: float
    holds: Key | None = None  # the attempt it works on, current or being stopped
    is_warm: bool = False
    """True if an attempt has come to train on it, so that the next one finds all it needs there."""
    node_id: str = ""  # empty where work cannot be kept from it
    gpu_id: str = ""  # of the GPU that it shares; empty if it shares none
    has_reported: bool = False
    answered: float | None = None
    """The time at which it last had nothing to report; None where slots do not say so."""


@dataclass
class CurrentAttempt:
    """The current attempt of a trial."""

    attempt: Attempt
    slot: Slot
    rate: ChargeRate
    until: float  # the resource up to which it may train before it waits for a command
    resource: float  # the resource of its last report
    last_event: float  # when it was last heard of
    stopping: str | None = None  # the reason why it was asked to save and stop; None if it was not
    away_s: float = 0.0  # the seconds of its time during which the driver was not listening
    reported: float | None = None  # the time of its last report, less what the driver was away for
    memory_fraction: float = 1.0  # of its GPU's memory, that it may use
    is_warm: bool = False  # true if others had come to train on its slot before it
    prepared_s: float = 0.0  # the seconds of its start, as its worker knows it
    first: tuple[float, float] | None = None
    """The resource of its first report, and the seconds until then."""
    latest: tuple[float, float] | None = None  # the same of its latest one
    paces: list[float] = field(default_factory=list)
    """Seconds for a unit of the budget, between its reports."""

    @property
    def key(self) -> Key:
        return self.attempt.trial, self.attempt.number

    def learn_pace(self, resource: float, now: float) -> None:
        """Learn from a report how long training takes from one report to the next."""
        report = resource, now - self.attempt.started - self.away_s
        if self.latest is None:
            self.first = report
        elif resource > self.latest[0]:
            passed_s = report[1] - self.latest[1]
            self.paces.append(max(0.0, passed_s) / (resource - self.latest[0]))
        self.latest = report

    @property
    def start_up_s(self) -> float | None:
        """Seconds before its first step, by its reports; None before the second one."""
        if self.first is None or not self.paces:
            return None
        resource, passed_s = self.first
        began_at = self.attempt.start_resource
        trained = resource - began_at if resource > began_at else resource
        return max(self.prepared_s, passed_s - trained * median(self.paces))

    def speed_at(self, resource: float, now: float, start_up_s: float) -> float | None:
        """Resource trained a second after its start-up, by a report; None if it is not known, as
        where the attempt may have waited for its driver for most of the time."""
        trained = resource - self.attempt.start_resource
        listened_s = now - self.attempt.started - self.away_s
        training_s = listened_s - start_up_s
        if trained <= 0 or training_s <= 0 or listened_s <= self.away_s:
            return None
        return trained / training_s

    def overdue(self, now: float, deadline_s: float, limit_s: float | None) -> str | None:
        """The reason why the attempt is overdue, by the longest time without a report and its time
        limit; None while it is not. Its reports may be on their way until its slot answers."""
        until = now if self.slot.answered is None else self.slot.answered
        silent_s = until - self.last_event
        if silent_s > deadline_s:
            return f"no report for {silent_s:.0f} s (report_deadline is {deadline_s:g} s)"
        if limit_s is None:
            return None
        past_s = now - self.attempt.started - self.away_s - limit_s
        if past_s > GRACE_S:
            return f"still running {past_s:.0f} s past its time limit of {limit_s:g} s"
        return None


class Attempts:
    """The slots of a study, and the attempts that run on them."""

    def __init__(self, spec: StudySpec, history: History, spending: Spending) -> None:
        self._spec = spec
        self._history = history
        self._spending = spending
        self.slots: dict[str, Slot] = {}  # by name
        self.running: dict[int, CurrentAttempt] = {}
        """The current attempts, by the number of their trial."""
        self._commands: list[ev.Command] = []
        self._sharing: dict[str, Sharing] = {}  # by the type of device
        self._changed: dict[str, float] = {}  # when the slots of each shared GPU last changed

    def send(self, command: ev.Command) -> None:
        """Have the driver carry out a command, once its cause is in the database."""
        self._commands.append(command)

    def commands(self) -> list[ev.Command]:
        """Hand out what was sent since the last call, in order."""
        commands, self._commands = self._commands, []
        return commands

    def end_unfinished(self, trial: Trial, last_seen: float) -> bool:
        """End what ran when its driver died, charged until then; False if nothing did."""
        unfinished = [attempt for attempt in trial.attempts if attempt.ended is None]
        for attempt in unfinished:
            ended = max(attempt.started, last_seen)
            gpus = self._spec.resources.stated_gpus if attempt.gpus is None else attempt.gpus
            rate, note = ChargeRate(gpus, attempt.started), "its driver died"
            self._spending.end(attempt, Outcome.INTERRUPTED, ended, rate, note)
        return bool(unfinished)

    def adopt(self, trial: Trial, until: float) -> None:
        """Make the latest attempt of a trial, which runs elsewhere up to a resource, current."""
        attempt = trial.attempts[-1]
        key = (trial.number, attempt.number)
        device = attempt.device or ""
        slot = Slot(
            attempt.worker, attempt.node or "", device, self._spec.resources.stated_gpus, holds=key
        )
        self.slots[slot.name] = slot
        self._spending.ledger.hold(attempt)
        own = [each for each in trial.reports.values() if each.attempt == attempt.number]
        resource = max((each.resource for each in own), default=attempt.start_resource)
        last_event = max((each.created for each in own), default=attempt.started)
        rate = ChargeRate(slot.gpus, attempt.started)
        self.running[trial.number] = CurrentAttempt(
            attempt, slot, rate, until, resource, last_event
        )

    def current(self, trial: int, attempt: int) -> CurrentAttempt | None:
        """The attempt of a trial with that number; None if it is not current."""
        running = self.running.get(trial)
        is_current = running is not None and running.attempt.number == attempt
        return running if is_current else None

    def add_slot(self, event: ev.SlotUp, now: float) -> None:
        """Add a worker that is ready."""
        slot = Slot(event.slot, event.node, event.device, event.gpus, node_id=event.node_id)
        self.slots[event.slot] = slot
        if not event.gpu_id:
            return
        slot.gpu_id = event.gpu_id
        self._divide(slot.gpu_id, now)
        if slot.device not in self._sharing:
            known = self._history.study.system_attrs.get(SHARING, {}).get(slot.device)
            self._sharing[slot.device] = Sharing(event.most, known)
            self._fill(slot.device)

    def _slots_on(self, gpu_id: str) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.gpu_id == gpu_id]

    def _divide(self, gpu_id: str, now: float) -> None:
        self._changed[gpu_id] = now
        slots = self._slots_on(gpu_id)
        for slot in slots:
            slot.gpus = 1 / len(slots)
            running = None if slot.holds is None else self.current(*slot.holds)
            if running is not None:
                before, running.rate = running.rate, running.rate.changed(slot.gpus, now)
                self._spending.rescale(running.attempt, before, running.rate, now)
                self._note_gpus(running, now)

    def _note_gpus(self, running: CurrentAttempt, now: float) -> None:
        """Record the mean GPUs of an attempt by now, for who takes the study over."""
        attempt = running.attempt
        if now > attempt.started:
            attempt.gpus = running.rate.charge(now) / (now - attempt.started)
            self._history.touch_attempt(attempt)

    def _fill(self, device: str) -> None:
        """Note how many slots share each GPU of a type, and have the driver fill them."""
        sharing, study = self._sharing[device], self._history.study
        known = {**study.system_attrs.get(SHARING, {}), device: sharing.known}
        study.system_attrs = {**study.system_attrs, SHARING: known}
        self._history.touch_study()
        self.send(ev.Fill(device, sharing.trials))

    def _learn_sharing(self, running: CurrentAttempt, resource: float, now: float) -> None:
        slot, before, is_first = running.slot, running.reported, not running.slot.has_reported
        running.reported, slot.has_reported = now, True
        if not slot.gpu_id:
            return
        self._note_gpus(running, now)
        since, speed = running.attempt.started, running.speed_at(resource, now, running.prepared_s)
        if before is not None:
            since = before
            speed = (resource - running.resource) / (now - before) if now > before else None
        beside = self._slots_on(slot.gpu_id)
        has_changed = since <= self._changed[slot.gpu_id]
        if is_first or has_changed or speed is None or any(each.holds is None for each in beside):
            return
        sharing = self._sharing[slot.device]
        known_before = sharing.trials, sharing.known
        sharing.learn(len(beside), running.attempt.trial, speed)
        if known_before != (sharing.trials, sharing.known):
            self._fill(slot.device)

    def share_with_fewer(self, running: CurrentAttempt) -> str | None:
        """Let one trial fewer share each such GPU. Returns a note; None if it shared none."""
        beside = len(self._slots_on(running.slot.gpu_id)) if running.slot.gpu_id else 1
        if beside == 1 and running.memory_fraction == 1:
            return None
        sharing = self._sharing[running.slot.device]
        sharing.ran_short(max(beside, round(1 / running.memory_fraction)), running.attempt.trial)
        self._fill(running.slot.device)
        return f"it shared its GPU: at most {sharing.known['most']} share one from now on"

    def share_as_before(self, trial: int) -> None:
        """Let as many trials share each GPU as before this one, which fails, ran out of memory."""
        for device, sharing in self._sharing.items():
            if sharing.failed(trial):
                self._fill(device)

    def drop_slot(self, name: str, now: float) -> Key | None:
        """Remove a worker that is gone; returns the attempt that it worked on, if any."""
        slot = self.slots.pop(name, None)
        if slot is not None and slot.gpu_id:
            self._divide(slot.gpu_id, now)
        return None if slot is None else slot.holds

    def leave_slot(self, key: Key) -> None:
        for slot in self.slots.values():
            if slot.holds == key:
                slot.holds = None

    def launch(self, trial: Trial, slot: Slot, until: float, cost: float, now: float) -> None:
        """Start an attempt of a trial on a free slot, which may cost so many GPU-seconds."""
        number = trial.number
        attempt = Attempt(
            number,
            len(trial.attempts) + 1,
            slot.name,
            started=now,
            start_resource=trial.trains_from,
            node=slot.node,
            device=slot.device,
            gpus=slot.gpus,
        )
        trial.version = self._history.version
        self._history.add_attempt(attempt)
        reserved = self._spending.reserve(attempt, cost)
        assert reserved, "the agenda hands out nothing that cannot be afforded"
        attempt.first_reserved_gpu_seconds = cost
        rate = ChargeRate(slot.gpus, now)
        memory_fraction = slot.gpus if slot.gpu_id else 1.0
        running = CurrentAttempt(
            attempt, slot, rate, until, trial.trains_from, now, memory_fraction=memory_fraction
        )
        slot.holds = running.key
        self.running[number] = running
        launch = ev.Launch(
            number,
            attempt.number,
            slot.name,
            dict(trial.params),
            trial.seed,
            until,
            resume_from=trial.checkpoint,
            time_limit_s=self._spec.budget.per_trial.time_limit_s,
            arithmetic=trial.arithmetic,
            memory_fraction=memory_fraction if slot.gpu_id else None,
            code=self._code_of(trial),
        )
        self.send(launch)

    def _code_of(self, trial: Trial) -> Code | None:
        run = trial.revision_run
        if run is None:
            return None
        revision = self._history.revisions[run.revision - 1]
        before = self._history.revisions[: run.revision - 1]
        patches = [each.patch for each in kept_before(before, revision.commit)]
        patches += [revision.patch] * run.is_changed
        return Code(revision.commit, tuple(patches), revision.harness)

    def began(self, running: CurrentAttempt, event: ev.Began) -> None:
        """Note that an attempt has come to train, or has failed at the start."""
        attempt, slot = running.attempt, running.slot
        attempt.arithmetic = dict(event.arithmetic)
        seconds = event.start_up_s
        if seconds is not None:
            attempt.start_up_seconds = running.prepared_s = seconds
            self._spending.start_ups.add(seconds, running.key, is_warm=slot.is_warm)
            running.is_warm = slot.is_warm
            slot.is_warm = True
        self._history.touch_attempt(attempt)

    def reported(self, running: CurrentAttempt, trial: Trial, resource: float, now: float) -> None:
        """Note that an attempt has reported at a resource: its trial has trained so far."""
        running.learn_pace(resource, now)
        self._learn_speed(running, trial, resource, now)
        self._learn_sharing(running, resource, now)
        trial.resource = max(trial.resource, resource)
        running.resource = max(running.resource, resource)
        rest = max(0.0, running.until - resource)
        self._spending.give_back(running.attempt, rest, now, running.rate)

    def _learn_speed(
        self, running: CurrentAttempt, trial: Trial, resource: float, now: float
    ) -> None:
        """Learn the speed of a trial. The first report of an attempt does not tell how much of the
        time before it was its start: that is taken from other attempts, if they have shown it."""
        spending = self._spending
        start_up_s = running.start_up_s
        if start_up_s is not None:
            running.attempt.start_up_seconds = start_up_s
            spending.start_ups.show(running.key, start_up_s)
        else:
            start_up_s = spending.start_ups.shown(is_warm=running.is_warm)
        speed = running.speed_at(resource, now, max(start_up_s or 0.0, running.prepared_s))
        if speed is None:
            speed = running.speed_at(resource, now, running.prepared_s)
        if speed is not None:
            trial.speed = speed
            spending.learn(trial, running.attempt, afresh=len(running.paces) == 1)

    def end(
        self, running: CurrentAttempt, outcome: Outcome, now: float, note: str | None = None
    ) -> None:
        self._spending.end(running.attempt, outcome, now, running.rate, note)
        del self.running[running.attempt.trial]

    def advance(
        self, running: CurrentAttempt, until: float, values: Mapping[str, Any] | None = None
    ) -> None:
        """Let an attempt train up to a resource, with the parameters that it has asked for."""
        running.until = until
        self.send(ev.Advance(*running.key, until, dict(values or {})))

    def save_and_stop(self, running: CurrentAttempt, why: str) -> None:
        """Ask an attempt to save and stop, unless it was asked before."""
        if running.stopping is None:
            running.stopping = why
            self.send(ev.Stop(*running.key, save=True))

    def is_trained(self, trial: Trial) -> bool:
        """True if a trial has reported its full budget: however it ends then, it has its result."""
        return trial.resource >= self._spec.budget.per_trial.total and trial.value is not None


class NodeHealth:
    """The failures of one study's nodes."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._failed: defaultdict[str, list[Trial]] = defaultdict(list)
        """The trials of the attempts that failed in a row, by node."""
        self._times: Counter[str] = Counter()  # how often each node was set aside in a row
        self._until: dict[str, float] = {}

    def worked(self, slot: Slot) -> None:
        for by_node in (self._failed, self._times, self._until):
            by_node.pop(slot.node_id, None)

    def failed(self, slot: Slot, trial: Trial, now: float) -> list[Trial]:
        """Count a failure. Returns the trials that failed in a row if that sets its node aside."""
        node_id = slot.node_id
        if not node_id:
            return []
        row = self._failed[node_id]
        row.append(trial)
        enough = 1 if self._times[node_id] else IN_A_ROW
        if len(row) < enough or not self._others_work(node_id, now):
            return []
        seconds = min(LONGEST_S, FIRST_S * 2 ** self._times[node_id])
        self._times[node_id] += 1
        self._until[node_id] = now + seconds
        self._attempts.send(ev.Avoid(node_id, slot.node, seconds))
        return self._failed.pop(node_id)

    def free_slots(self, now: float) -> list[Slot]:
        """The slots that hold no attempt, on nodes that are not set aside."""
        slots = self._attempts.slots.values()
        return [slot for slot in slots if slot.holds is None and not self._is_aside(slot, now)]

    def _is_aside(self, slot: Slot, now: float) -> bool:
        until = self._until.get(slot.node_id, now)
        return until > now and bool(self._node_ids() - {slot.node_id})

    def _others_work(self, node_id: str, now: float) -> bool:
        others = self._node_ids() - {node_id}
        return any(not self._failed[each] and self._until.get(each, now) <= now for each in others)

    def _node_ids(self) -> set[str]:
        return {slot.node_id for slot in self._attempts.slots.values()}


def latest_time_on_record(history: History) -> float:
    """The latest time on record; 0 if there is none."""
    times = [0.0]
    for trial in history.trials:
        times += [attempt.started for attempt in trial.attempts]
        times += [report.created for report in trial.reports.values()]
    return max(times)
