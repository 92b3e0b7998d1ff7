"""Nodes on which trials fail are set aside while others work, and tried again."""

from hpsearch.brain.attempts import FIRST_S, IN_A_ROW
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from support.studies.small import brain, budget_of, spec_with


class Nodes:
    """A study on slots that are each a node of their own."""

    def __init__(self, *nodes: str) -> None:
        budget = budget_of(40)
        self.study: Study = brain(spec_with(budget=budget))
        self.avoided: list[ev.Avoid] = []
        self.runs: dict[str, ev.Launch] = {}
        self.study.begin(0.0)
        for node in nodes:
            self.happens(ev.SlotUp(node, "10.0.0.1", "cpu", 1.0, node_id=node), 0.0)
        self.tick(0.0)

    def happens(self, event: ev.Event, now: float) -> None:
        self.take(self.study.on_event(event, now))

    def tick(self, now: float) -> None:
        self.take(self.study.on_tick(now))

    def take(self, commands: list[ev.Command]) -> None:
        for command in commands:
            if isinstance(command, ev.Avoid):
                self.avoided.append(command)
            if isinstance(command, ev.Launch):
                self.runs[command.slot] = command

    def fails(self, node: str, now: float, kind: ErrorKind = ErrorKind.ERROR) -> int:
        order = self.runs.pop(node)
        self.happens(ev.Failed(order.trial, order.attempt, kind, "no driver"), now)
        self.tick(now)
        return order.trial

    def is_lost(self, node: str, now: float) -> int:
        order = self.runs.pop(node)
        self.happens(ev.Lost(order.trial, order.attempt, "killed"), now)
        self.tick(now)
        return order.trial

    def reports(self, node: str, now: float) -> None:
        order = self.runs[node]
        self.happens(ev.Reported(order.trial, order.attempt, 0.5, {"loss": 1.0}), now)


def test_a_node_where_trials_fail_in_a_row_is_set_aside_and_its_trials_run_elsewhere():
    on = Nodes("good", "bad")
    failed = [on.fails("bad", float(second)) for second in range(1, IN_A_ROW + 1)]
    trials = on.study.history.trials
    assert on.avoided == [ev.Avoid("bad", "10.0.0.1", FIRST_S)]
    assert "bad" not in on.runs, "it gets no work"
    assert {trials[number].state for number in failed} == {State.QUEUED}
    assert on.study.phase is Phase.SEARCHING, "one node never makes a study give up"
    kinds = [each.kind for each in on.study.history.drain().decisions]
    assert kinds.count(DecisionKind.ASIDE) == 1
    on.fails("good", 5.0, ErrorKind.DIVERGED)
    assert on.runs["good"].trial in failed, "they are the next to run"


def test_a_node_is_tried_again_for_a_time_that_doubles_and_cleared_by_a_report():
    on = Nodes("good", "bad")
    for _ in range(IN_A_ROW):
        on.fails("bad", 1.0)
    on.tick(FIRST_S)
    assert "bad" not in on.runs
    on.tick(FIRST_S + 1.0)
    on.fails("bad", FIRST_S + 2.0)
    assert on.avoided[-1].seconds == 2 * FIRST_S, "one failure is enough now"
    on.tick(3 * FIRST_S + 2.0)
    on.reports("bad", 3 * FIRST_S + 3.0)
    on.fails("bad", 3 * FIRST_S + 4.0)
    assert len(on.avoided) == 2, "it takes a whole row again"


def test_the_last_node_is_never_set_aside():
    on = Nodes("only")
    for _ in range(IN_A_ROW):
        on.fails("only", 1.0)
    assert not on.avoided
    assert on.study.phase is Phase.ENDING, "as ever: the trials are the reason"


def test_code_that_fails_on_every_node_blames_none_and_ends_the_study():
    on = Nodes("one", "two")
    for node in ("one", "two", "one"):
        on.fails(node, 1.0)
    assert not on.avoided
    assert on.study.phase is Phase.ENDING


def test_lost_workers_of_a_node_that_is_set_aside_count_against_no_trial():
    on = Nodes("good", "bad")
    lost = {on.is_lost("bad", float(second)) for second in range(1, IN_A_ROW + 1)}
    assert len(on.avoided) == 1
    trials = on.study.history.trials
    assert all(trials[number].forgiven == len(trials[number].attempts) for number in lost)


def test_what_a_configuration_is_to_blame_for_is_held_against_no_node():
    on = Nodes("good", "bad")
    for _ in range(IN_A_ROW + 1):
        on.fails("bad", 1.0, ErrorKind.OUT_OF_MEMORY)
    assert not on.avoided
