"""The brain of a study: events in, records and commands out. No clock, no cluster, no SQL.

The driver calls it in a loop. `on_event` takes what happened, `on_tick` gives free slots work and watches limits; both
change the records of the `History` and return commands, which the driver carries out once those records are in the
database. Time is an argument, in seconds since the epoch; randomness is the searcher's and derived.

How a trial lives (the table is in `lifecycle`): `_next` picks what a free slot does - a trial that lost its worker,
then a promotion, then a new configuration - and `_launch` makes an attempt of it. `_reported` asks the searcher for a
verdict at every report. An attempt ends in one place, `_end`, where its GPU-seconds are settled.

Word from an attempt that is not current is dropped, but for one thing: it frees the slot it comes from.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch import events as ev
from hpsearch.budget import Key, Ledger, Pace, gpu_share
from hpsearch.failures import FailureWatch
from hpsearch.lifecycle import State, move
from hpsearch.records import Attempt, Decision, History, Outcome, Report, StudyState, Trial
from hpsearch.rungs import Judgement, Verdict
from hpsearch.search import Search, derived_seed
from hpsearch.spec import StudySpec
from trials.contract import Unit

GRACE_S = 30.0
"""How much longer than its limits the brain waits for a worker to enforce them itself."""


@dataclass
class Slot:
    """A worker as the brain knows it."""

    name: str
    node: str
    device: str
    gpus: float
    holds: Key | None = None
    """The attempt it works on, current or on its way out."""


@dataclass
class Live:
    """A current attempt."""

    attempt: Attempt
    slot: Slot
    until: float
    resource: float
    """Where its last report stood."""
    heard: float
    """When it last gave word."""
    stopping: str | None = None
    """Why it was told to save and stop."""


class Study:
    """One study being driven.

    Args:
        spec: What is searched, for what, with which budget.
        history: All records so far; the brain's only memory.
        search: Proposes, judges and promotes over the same history.
        defaults: The task's default settings inside the space, tried first as the yardstick; None if it has none.
    """

    def __init__(
        self, spec: StudySpec, history: History, search: Search, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.spec = spec
        self.history = history
        self.slots: dict[str, Slot] = {}
        self.live: dict[int, Live] = {}
        self.ending: str | None = None
        """Why nothing new starts any more."""
        self.interrupted = False
        budget = spec.budget
        self.ledger = Ledger.of(
            (attempt for trial in history.trials for attempt in trial.attempts),
            gpu_hours=budget.gpu_hours,
            cost=budget.cost,
            cost_per_gpu_hour=budget.cost_per_gpu_hour,
        )
        self._search = search
        self._asked_for = [("default", dict(defaults))] if defaults is not None else []
        self._asked_for += [("enqueued", dict(params)) for params in spec.enqueue]
        self._queue: deque[int] = deque()
        self._pace = Pace()
        self._failures = FailureWatch()
        self._total = budget.per_trial.total
        self._sign = -1.0 if spec.objective.direction == "maximize" else 1.0
        self._searched = sum(trial.role != "confirm" for trial in history.trials)
        self._began = 0.0
        self._active_before = 0.0

    # ------------------------------------------------------------------------------------ beginning and ending

    def begin(self, now: float, last_seen: float | None = None) -> None:
        """Take the study up: what was running when its last driver ended goes back to the queue.

        Args:
            now: The time.
            last_seen: When the last driver was known to live; what its attempts cost is counted until then.
        """
        self._began, self._active_before = now, self.history.study.active_seconds
        self.history.study.state, self.history.study.reason, self.history.study.ended = StudyState.RUNNING, None, None
        self.history.touch_study()
        for trial in self.history.trials:
            for attempt in trial.attempts:
                if attempt.ended is not None:
                    self._pace.saw(trial.resource, trial.gpu_seconds)
                    continue
                ended = max(attempt.started, min(now, last_seen if last_seen is not None else now))
                self._settle(trial, attempt, Outcome.INTERRUPTED, ended, 1.0, "its driver died")
                self._move(trial, State.QUEUED)
            if trial.state is State.QUEUED:
                self._queue.append(trial.number)

    def interrupt(self, now: float) -> list[ev.Command]:
        """Ask everything that runs to save and stop; the study stays resumable."""
        self.interrupted = True
        return self._wind_down("interrupted")

    def abandon(self, now: float) -> None:
        """Stop waiting for what was asked to stop: it counts as interrupted now, at its last checkpoint."""
        for live in list(self.live.values()):
            trial = self.history.trials[live.attempt.trial]
            self._end(live, Outcome.INTERRUPTED, now, live.stopping)
            self._move(trial, State.QUEUED)

    def close(self, now: float) -> None:
        """Write down where the study stands, once nothing runs any more."""
        assert not self.live, "a study is closed after its attempts have ended"
        study = self.history.study
        study.active_seconds = self._active(now)
        study.ended = now
        if self.interrupted:
            study.state, study.reason = StudyState.INTERRUPTED, self.ending
            self.history.touch_study()
            return
        for trial in self.history.trials:
            if trial.state in (State.PAUSED, State.QUEUED):
                self._move(trial, State.PRUNED)
                trial.ended = now
                self._decide(trial, "prune", "the study ended without it", now)
        worked = any(trial.value is not None for trial in self.history.trials)
        study.state = StudyState.FINISHED if worked else StudyState.FAILED
        study.reason = self.ending if worked else self._failures.summary() or self.ending
        self.history.touch_study()

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing more will."""
        return self.ending is not None and not self.live

    def _active(self, now: float) -> float:
        return self._active_before + max(0.0, now - self._began)

    def _wind_down(self, why: str) -> list[ev.Command]:
        """Start nothing new; what runs saves and stops."""
        if self.ending is None or self.interrupted:
            self.ending = why
        commands: list[ev.Command] = []
        for live in self.live.values():
            if live.stopping is None:
                live.stopping = why
                commands.append(ev.Stop(live.attempt.trial, live.attempt.number, save=True))
        return commands

    # -------------------------------------------------------------------------------------------------- events

    def on_event(self, event: ev.Event, now: float) -> list[ev.Command]:
        """Turn one event into changes of the records, and say what is to be done."""
        match event:
            case ev.SlotUp():
                self.slots[event.slot] = Slot(event.slot, event.node, event.device, event.gpus)
                return []
            case ev.SlotDown():
                return self._slot_down(event, now)
            case ev.Finished() | ev.Stopped() | ev.Failed() | ev.Lost():
                self._free((event.trial, event.attempt))
        live = self.live.get(event.trial)
        if live is None or live.attempt.number != event.attempt:
            return []
        live.heard = now
        trial = self.history.trials[event.trial]
        match event:
            case ev.Reported():
                return self._reported(live, trial, event, now)
            case ev.Finished():
                return self._finished(live, trial, event, now)
            case ev.Stopped():
                trial.checkpoint = event.checkpoint or trial.checkpoint
                self._end(live, Outcome.INTERRUPTED, now, live.stopping)
                self._requeue(trial)
            case ev.Failed():
                return self._failed(live, trial, event.kind, event.text, now)
            case ev.Lost():
                return self._lost(live, trial, event.why, now)
        return []

    def _slot_down(self, event: ev.SlotDown, now: float) -> list[ev.Command]:
        slot = self.slots.pop(event.slot, None)
        if slot is None or slot.holds is None:
            return []
        return self.on_event(ev.Lost(*slot.holds, event.why), now)

    def _reported(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> list[ev.Command]:
        metric = self.spec.objective.metric
        if metric not in event.metrics:
            text = f"the report at {event.resource:g} has no {metric}; it has {', '.join(sorted(event.metrics))}"
            return [*self._failed(live, trial, "error", text, now), ev.Stop(event.trial, event.attempt)]
        previous, report = live.resource, self._record(live, trial, event, now)
        judgement = self._search.judge(trial, report, previous)
        if trial.value is not None and self._reaches_target(trial.value):
            self.ending = self.ending or f"trial {trial.number} reached the target with {trial.value:g}"
        if report.resource >= self._total:
            return []
        if judgement.verdict is Verdict.CONTINUE:
            return self._continue(live, trial, judgement, now)
        paused = judgement.verdict is Verdict.PAUSE
        self._decide(trial, "pause" if paused else "prune", judgement.why, now, judgement.against)
        self._end(live, Outcome.PAUSED if paused else Outcome.PRUNED, now)
        self._move(trial, State.PAUSED if paused else State.PRUNED)
        trial.ended = None if paused else now
        if report.resource >= live.until:  # the worker waits, so it is free as soon as it is told
            self._free((event.trial, event.attempt))
        return [ev.Stop(event.trial, event.attempt)]

    def _record(self, live: Live, trial: Trial, event: ev.Reported, now: float) -> Report:
        raw = float(event.metrics[self.spec.objective.metric])
        report = Report(
            trial=trial.number,
            resource=event.resource,
            value=raw if math.isfinite(raw) else None,
            metrics=dict(event.metrics),
            attempt=event.attempt,
            step=event.step,
            elapsed=event.elapsed,
            created=now,
        )
        self.history.add_report(report)
        if report.value is not None and (trial.value is None or self._sign * (report.value - trial.value) < 0):
            trial.value = report.value
        trained = event.resource - live.attempt.start_resource
        if trained > 0 and now > live.attempt.started:
            trial.speed = trained / (now - live.attempt.started)
            self._pace.saw(trained, now - live.attempt.started)
        trial.resource = max(trial.resource, event.resource)
        trial.checkpoint = event.checkpoint or trial.checkpoint
        live.resource = max(live.resource, event.resource)
        self._failures.worked()
        self.history.touch(trial)
        return report

    def _continue(self, live: Live, trial: Trial, judgement: Judgement, now: float) -> list[ev.Command]:
        if judgement.against:
            self._decide(trial, "continue", judgement.why, now, judgement.against)
        if trial.resource < live.until or live.stopping is not None:
            return []
        until = self._search.until(trial)
        if not self._reserve(live.attempt, self._need(until - trial.resource, live.slot.gpus)):
            live.stopping = "the budget left does not reach to its next rung"
            return [ev.Stop(trial.number, live.attempt.number, save=True)]
        live.until = until
        return [ev.Advance(trial.number, live.attempt.number, until)]

    def _finished(self, live: Live, trial: Trial, event: ev.Finished, now: float) -> list[ev.Command]:
        if trial.value is None:
            text = f"it came to its end without a finite {self.spec.objective.metric}"
            return self._failed(live, trial, "diverged" if trial.reports else "error", text, now)
        self._decide(trial, "finish", event.why, now)
        self._end(live, Outcome.COMPLETE, now)
        self._move(trial, State.COMPLETE)
        trial.ended = now
        return []

    def _failed(self, live: Live, trial: Trial, kind: str, text: str, now: float) -> list[ev.Command]:
        self._decide(trial, "fail", f"{kind}: {text}", now)
        self._end(live, Outcome.FAILED, now, text)
        self._move(trial, State.FAILED)
        trial.error_kind, trial.error_text, trial.ended = kind, text, now
        self._failures.failed(kind, text)
        if hopeless := self._failures.hopeless():
            return self._wind_down(hopeless)
        return []

    def _lost(self, live: Live, trial: Trial, why: str, now: float) -> list[ev.Command]:
        self._end(live, Outcome.LOST, now, why)
        lost = sum(attempt.outcome is Outcome.LOST for attempt in trial.attempts)
        if lost > self.spec.resources.retries:
            self._decide(trial, "fail", f"lost {lost} workers: {why}", now)
            self._move(trial, State.FAILED)
            trial.error_kind, trial.error_text, trial.ended = "lost", f"lost {lost} workers, the last one: {why}", now
            self._failures.failed("lost", why)
            hopeless = self._failures.hopeless()
            return self._wind_down(hopeless) if hopeless else []
        self._decide(trial, "retry", why, now)
        self._requeue(trial)
        return []

    # ------------------------------------------------------------------------------------------ filling slots

    def on_tick(self, now: float) -> list[ev.Command]:
        """Watch the limits, give free slots work, and notice the end."""
        commands = self._watch(now)
        free = [slot for slot in self.slots.values() if slot.holds is None]
        idle = not self.live
        for slot in free:
            if self.ending is not None:
                break
            launch = self._next(slot, now, last_call=idle)
            if launch is None:
                break
            commands.append(launch)
        if free and self.ending is None and not self.live:
            self.ending = self._why_nothing_is_left()
        return commands

    def _watch(self, now: float) -> list[ev.Command]:
        commands: list[ev.Command] = []
        wall_clock = self.spec.budget.wall_clock_s
        if self.ending is not None and not self.interrupted:
            commands += self._wind_down(self.ending)
        elif wall_clock is not None and self._active(now) >= wall_clock:
            commands += self._wind_down("its wall-clock time is used")
        deadline, limit = self.spec.resources.report_deadline_s, self.spec.budget.per_trial.time_limit_s
        for live in list(self.live.values()):
            attempt, trial = live.attempt, self.history.trials[live.attempt.trial]
            if now - live.heard > deadline:
                text = f"no word for {now - live.heard:.0f} s (report_deadline is {deadline:g} s)"
            elif limit is not None and now - attempt.started > limit + GRACE_S:
                text = f"still running {now - attempt.started - limit:.0f} s past its time limit of {limit:g} s"
            else:
                commands += self._watch_reservation(live, now)
                continue
            commands += self._failed(live, trial, "timeout", text, now)
            commands.append(ev.Stop(attempt.trial, attempt.number))
        return commands

    def _watch_reservation(self, live: Live, now: float) -> list[ev.Command]:
        """An attempt that has used up what was reserved for it takes more, or saves and stops."""
        used = (now - live.attempt.started) * gpu_share(live.slot.gpus)
        if self.ledger.limit is None or live.stopping is not None or used < live.attempt.reserved_gpu_seconds:
            return []
        if self._reserve(live.attempt, max(1.0, live.attempt.reserved_gpu_seconds / 4)):
            return []
        live.stopping = "the study's budget is used"
        return [ev.Stop(live.attempt.trial, live.attempt.number, save=True)]

    def _next(self, slot: Slot, now: float, *, last_call: bool) -> ev.Command | None:
        """What a free slot does: a trial that lost its worker, a promotion, a new configuration, a confirmation."""
        if self._queue:
            trial = self.history.trials[self._queue[0]]
            command = self._launch(trial, slot, now)
            if command is not None:
                self._queue.popleft()
            return command
        more = self.spec.budget.trials is None or self._searched < self.spec.budget.trials
        promotion = self._search.promotion(last_call=last_call and not more)
        if promotion is not None:
            trial, judgement = promotion
            return self._launch(trial, slot, now, judgement)
        if not more:
            return self._confirm(slot, now) if last_call else None
        if not self._affordable(self._search_stretch(), slot.gpus):
            return None
        return self._launch(self._new_trial(now), slot, now)

    def _new_trial(self, now: float) -> Trial:
        number = len(self.history.trials)
        role, given = self._asked_for[number] if number < len(self._asked_for) else ("search", None)
        trial = self._add_trial(now, role)
        self._searched += 1
        self._search.propose(trial, given)
        self._decide(trial, "start", "the task's defaults" if role == "default" else role, now)
        return trial

    def _add_trial(self, now: float, role: str) -> Trial:
        number = len(self.history.trials)
        seed = derived_seed(self.spec.seed, number, "trial")
        return self.history.add_trial(Trial(number, State.QUEUED, {}, seed=seed, created=now, role=role))

    def _confirm(self, slot: Slot, now: float) -> ev.Command | None:
        """Train one of the leading configurations once more in full, on a fresh seed."""
        confirm = self.spec.search.confirm
        if confirm is None or not self._affordable(self._total, slot.gpus):
            return None
        complete = [t for t in self.history.trials if t.state is State.COMPLETE and t.role != "confirm"]
        leaders = sorted(complete, key=lambda t: (self._sign * (t.value or 0.0), t.number))[: confirm.top]
        repeats = [t.repeats for t in self.history.trials if t.role == "confirm"]
        for leader in sorted(leaders, key=lambda t: repeats.count(t.number)):
            if repeats.count(leader.number) >= confirm.seeds:
                continue
            trial = self._add_trial(now, "confirm")
            trial.repeats, trial.params, trial.distributions = leader.number, leader.params, leader.distributions
            self._decide(trial, "start", f"confirms trial {leader.number}", now, [leader.number])
            return self._launch(trial, slot, now)
        return None

    def _launch(self, trial: Trial, slot: Slot, now: float, judgement: Judgement | None = None) -> ev.Command | None:
        """Start an attempt, if the budget can reserve its worst case; otherwise change nothing but the queue."""
        until = self._search.until(trial)
        attempt = Attempt(
            trial.number,
            len(trial.attempts) + 1,
            slot.name,
            started=now,
            start_resource=trial.resource if trial.checkpoint else 0.0,
            node=slot.node,
            device=slot.device,
        )
        if not self._reserve(attempt, self._need(until - attempt.start_resource, slot.gpus)):
            if trial.state is State.QUEUED and trial.number not in self._queue:
                self._queue.append(trial.number)
            return None
        if judgement is not None:
            self._decide(trial, "promote", judgement.why, now, judgement.against)
        self._search.continues(trial)
        self._move(trial, State.RUNNING)
        trial.started = trial.started if trial.started is not None else now
        self.history.add_attempt(attempt)
        slot.holds = (trial.number, attempt.number)
        self.live[trial.number] = Live(attempt, slot, until, attempt.start_resource, heard=now)
        limit = self.spec.budget.per_trial.time_limit_s
        return ev.Launch(
            trial.number, attempt.number, slot.name, trial.params, trial.seed, until, trial.checkpoint, limit
        )

    def _why_nothing_is_left(self) -> str:
        trials = self.spec.budget.trials
        if self._queue or trials is None or self._searched < trials:
            return "the budget left is too small for another trial"
        return f"all {trials} trials have ended"

    # ----------------------------------------------------------------------------------------------- the books

    def _search_stretch(self) -> float:
        """How far a new trial trains before it is first judged."""
        return self._search.until(Trial(-1, State.QUEUED, {}))

    def _need(self, stretch: float, gpus: float) -> float:
        """GPU-seconds that training so much further may cost at most; before anything was seen, a fair share."""
        if self.ledger.limit is None:
            return 0.0
        worst = self._pace.worst_case_s(stretch)
        if self.spec.budget.per_trial.unit is Unit.SECONDS:
            worst = max(worst or 0.0, stretch)
        limit = self.spec.budget.per_trial.time_limit_s
        if limit is not None:
            worst = min(worst, limit) if worst is not None else limit
        if worst is None:
            return (self.ledger.limit - self.ledger.spent) / max(1, len(self.slots)) * 0.99
        return worst * gpu_share(gpus)

    def _affordable(self, stretch: float, gpus: float) -> bool:
        left = self.ledger.left
        return left is None or (left > 0 and self._need(stretch, gpus) <= left)

    def _reserve(self, attempt: Attempt, amount: float) -> bool:
        if not self.ledger.reserve((attempt.trial, attempt.number), amount):
            return False
        attempt.reserved_gpu_seconds += amount
        if attempt.number <= len(self.history.trials[attempt.trial].attempts):
            self.history.touch_attempt(attempt)
        return True

    def _end(self, live: Live, outcome: Outcome, now: float, note: str | None = None) -> None:
        """End an attempt: the one place where its cost is settled."""
        attempt = live.attempt
        self._settle(self.history.trials[attempt.trial], attempt, outcome, now, gpu_share(live.slot.gpus), note)
        del self.live[attempt.trial]

    def _settle(
        self, trial: Trial, attempt: Attempt, outcome: Outcome, now: float, share: float, note: str | None
    ) -> None:
        attempt.ended, attempt.outcome, attempt.note = now, outcome, note
        attempt.gpu_seconds = max(0.0, now - attempt.started) * share
        self.ledger.settle((attempt.trial, attempt.number), attempt.gpu_seconds)
        trial.gpu_seconds += attempt.gpu_seconds
        trial.cost = self.ledger.cost_of(trial.gpu_seconds)
        self.history.touch_attempt(attempt)
        self.history.touch(trial)

    # ------------------------------------------------------------------------------------------------- helpers

    def _free(self, key: Key) -> None:
        for slot in self.slots.values():
            if slot.holds == key:
                slot.holds = None

    def _requeue(self, trial: Trial) -> None:
        self._move(trial, State.QUEUED)
        self._queue.append(trial.number)

    def _move(self, trial: Trial, to: State) -> None:
        trial.state = move(trial.state, to, f"trial {trial.number} at {trial.resource:g}")
        self.history.touch(trial)

    def _decide(self, trial: Trial, kind: str, why: str, now: float, against: list[int] | None = None) -> None:
        self.history.add_decision(Decision(trial.number, kind, why, trial.resource, against or [], now))

    def _reaches_target(self, value: float) -> bool:
        target = self.spec.budget.target
        return target is not None and self._sign * (value - target) <= 0
