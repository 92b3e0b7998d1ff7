"""Studies that are disturbed in every way there is come to what they would have come to
undisturbed.

The drivers of random studies are killed, raise, are interrupted, abandon their workers and lose
their study to another one. Workers are lost, trials fail, report across several rungs, save late or
never, and whole sessions fail for a reason that is mended afterwards. Budgets are raised. What
holds after every tick and every driver stands in `drawn`; here is what holds in the end.
"""

import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.running.checkpoint_folders import MARKER
from hpsearch.search.ranking.verdicts.question import FURTHER
from hpsearch.store.store import Store
from support.studies.drawn import Plan, Session, World, plans, searched, sessions
from support.thoroughness import examples
from trials.checkpoints.folders import trial_folder

STUDIES = examples(40)
PAIRS = examples(15)


def lived(plan: Plan, befalls: list[Session], root: Path) -> World:
    """A study after all that befalls it."""
    with closing(Store.open("sqlite://")) as store:
        world = World(plan, store, root)
        for session in befalls:
            world.go_through(session)
        world.end = world.history
    return world


def lived_together(
    plans: tuple[Plan, Plan], befalls: tuple[list[Session], list[Session]], root: Path
) -> list[World]:
    """Two studies of one database, whose drivers take turns, with one folder for the checkpoints of
    both."""
    with closing(Store.open("sqlite://")) as store:
        worlds = [World(plan, store, root) for plan in plans]
        for sessions_of_both in zip_longest(*befalls):
            for world, session in zip(worlds, sessions_of_both, strict=True):
                if session is not None:
                    world.go_through(session)
        for world in worlds:
            world.end = world.history
    return worlds


@given(plans(), sessions())
@settings(
    max_examples=STUDIES,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # a study takes a tenth of a second, and shrinking one takes thousands
)
def test_a_disturbed_study_comes_to_what_it_would_have_come_to(plan, befalls):
    check_a_study(plan, befalls)


def check_a_study(plan: Plan, befalls: list[Session]) -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        world = lived(plan, befalls, Path(folder))
        given = sum(session.more for session in befalls)
        undisturbed = lived(plan, [Session("end", 0, more=given)], Path(other))
        check_the_ledger(world)
        check_the_folder(world)
        check_the_repeats(world)
        check_the_trials(world, undisturbed.end)


@pytest.mark.thorough
@given(plans(), plans(), sessions(), sessions())
@settings(
    max_examples=PAIRS,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
def test_two_studies_side_by_side_leave_each_others_folders_alone(
    one, other, befalls_one, befalls_other
):
    both = replace(one, name="one"), replace(other, name="other")
    with tempfile.TemporaryDirectory() as root:
        worlds = lived_together(both, (befalls_one, befalls_other), Path(root))
        assert set(Path(root).iterdir()) == {world.folder for world in worlds}
        for world in worlds:
            check_the_ledger(world)
            check_the_folder(world)
            check_the_repeats(world)


def check_the_ledger(world: World) -> None:
    charged = sum(attempt.gpu_seconds for trial in world.end.trials for attempt in trial.attempts)
    assert charged == pytest.approx(world.owed), "what ran is charged, and nothing else"
    if world.plan.gpu_seconds is not None:
        limit = world.plan.gpu_seconds * world.plan.share * (1 + world.budgets)
        assert charged <= limit * (1 + 1e-9) + world.unheeded


def check_the_folder(world: World) -> None:
    kept = {
        trial_folder(trial.number) for trial in world.end.trials if trial.checkpoint is not None
    }
    assert {path.name for path in world.folder.iterdir()} == {*kept, MARKER}
    assert all(
        Path(trial.checkpoint).exists()
        for trial in world.end.trials
        if trial.checkpoint is not None
    )


def check_the_repeats(world: World) -> None:
    repeats = [trial for trial in world.end.trials if trial.role is Role.CONFIRM]
    promised = (
        world.plan.confirm["top"] * world.plan.confirm["seeds"]
        if world.plan.confirm is not None
        else 0
    )
    if world.plan.gpu_seconds is None:
        assert len(repeats) <= promised * (1 + world.budgets)
    of_one = Counter(repeat.repeats for repeat in repeats)
    seeds = 0 if world.plan.confirm is None else world.plan.confirm["seeds"]
    assert all(number <= FURTHER * seeds for number in of_one.values())


def check_the_trials(world: World, undisturbed: History) -> None:
    history, plan = world.end, world.plan
    worked = any(trial.value is not None for trial in history.trials)
    assert history.study.state is (StudyState.FINISHED if worked else StudyState.FAILED)
    assert all(trial.state.terminal for trial in history.trials)
    for ours, theirs in pairs(history, undisturbed):
        assert (ours.params, ours.seed, ours.role) == (theirs.params, theirs.seed, theirs.role)
    if plan.gpu_seconds is not None:
        return
    assert len(searched(history)) == plan.spec(world.budgets).budget.trials
    for trial in searched(history):
        assert trial.reports or (trial.error_kind and trial.error_kind.of_configuration), (
            "every trial has its turn"
        )
    if plan.pruner == "none":
        for ours, theirs in pairs(history, undisturbed):
            assert (ours.state, ours.value) == (theirs.state, theirs.value)
            assert ours.error_kind == theirs.error_kind
    elif any(trial.value is not None for trial in searched(history)):
        assert any(trial.state is State.COMPLETE for trial in history.trials)


def pairs(history: History, undisturbed: History) -> list[tuple[Trial, Trial]]:
    """The trials that both have tried under the same number: those before the first repeat."""
    both = list(zip(history.trials, undisturbed.trials, strict=False))
    repeats = (n for n, pair in enumerate(both) if Role.CONFIRM in (pair[0].role, pair[1].role))
    return both[: next(repeats, len(both))]
