"""Which checkpoints a study keeps, and how the others go."""

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hpsearch.brain import retention
from hpsearch.brain.retention import BEST, Retention, used_bytes
from hpsearch.domain import events as ev
from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import CONSTRAINT, Attempt, Decision, Trial
from hpsearch.running.checkpoint_folders import Mark, StudyFolder, trials_in
from hpsearch.running.driver.sweeping import Sweeper
from hpsearch.search.ranking.pareto import foremost
from hpsearch.search.ranking.selection import rank
from support.studies.small import Simulation, brain, budget_of, history_for, search_by, spec_with
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.folders import folder_at, inside, trial_folder
from trials.checkpoints.manifests import Label
from trials.checkpoints.trimming import WORKING
from trials.contract import CheckpointSizes


def kept(*trials: Trial) -> list[int]:
    """Numbers of the trials that keep their checkpoint; each is given one."""
    spec = spec_with()
    history = history_for(spec)
    for trial in trials:
        trial.checkpoint = "somewhere"
        history.add_trial(trial)
    Retention(spec, history).drop()
    return [trial.number for trial in trials if trial.checkpoint is not None]


def test_failed_trials_and_repeats_keep_nothing():
    repeat = Trial(1, State.COMPLETE, {}, value=0.1, role=Role.CONFIRM, repeats=0)
    assert kept(
        Trial(0, State.COMPLETE, {}, value=0.2), repeat, Trial(2, State.FAILED, {}, value=0.1)
    ) == [0]


def test_the_best_that_ended_keep_theirs_and_the_surpassed_do_not():
    ended = [
        Trial(n, State.COMPLETE if n % 2 else State.PRUNED, {}, value=n / 100)
        for n in range(BEST + 5)
    ]
    assert kept(*ended) == list(range(BEST))


def test_those_of_which_most_is_expected_keep_theirs_and_not_the_lucky():
    lucky = [
        Trial(n, State.PRUNED, {}, value=0.1, expected=0.9, expected_deviation=0.1)
        for n in range(5)
    ]
    ended = [
        Trial(n, State.PRUNED, {}, value=0.5, expected=n / 100, expected_deviation=0.1)
        for n in range(5, BEST + 5)
    ]
    assert kept(*lucky, *ended) == list(range(5, BEST + 5))


def test_of_equal_trials_the_one_that_is_shown_as_the_best_keeps_its_checkpoint():
    ended = [Trial(n, State.PRUNED, {}, value=0.5, resource=1.0 + n / 100) for n in range(BEST + 5)]
    complete = Trial(BEST + 5, State.COMPLETE, {}, value=0.5, resource=9.0)
    best = [ranked.trial.number for ranked in rank([*ended, complete], "minimize")]
    assert kept(*ended, complete) == sorted(best[:BEST])


def test_what_may_come_back_keeps_its_checkpoint():
    left = Trial(BEST + 1, State.PAUSED, {}, value=9.0)
    left.left_as = left.state
    left.state = State.PRUNED
    others = [Trial(n, State.COMPLETE, {}, value=n / 100) for n in range(BEST + 1)]
    assert kept(*others, left) == [*range(BEST), BEST + 1]


def test_so_many_wait_and_no_more(monkeypatch):
    monkeypatch.setattr(retention, "WAITING", 5)
    study = Simulation(spec_with(budget=budget_of(60)))
    most = 0
    while not study.study.finished:
        study.tick()
        most = max(most, sum(trial.state is State.PAUSED for trial in study.history.trials))
    assert most == 5
    study.study.close(study.executor.now)
    held = [trial for trial in study.history.trials if trial.checkpoint is not None]
    assert len(held) <= BEST + 5
    best = min(
        study.history.trials, key=lambda trial: trial.value if trial.value is not None else 9.0
    )
    assert best in held


# --------------------------------------------------------------------------------------------------
# max_gb

GIGABYTE = 10**9


def under_limit(max_gb: float, *trials: Trial, **changes: Any) -> tuple[list[int], list[Decision]]:
    """Numbers of the trials that keep their checkpoint after a tick, and what was decided; each
    holds a gigabyte."""
    spec = spec_with(
        checkpoints={"max_gb": max_gb}, budget={"trials": len(trials), "per_trial": {"epochs": 9}}
    )
    study = brain(spec.model_copy(update=changes))
    study.begin(0.0)
    for trial in trials:
        trial.checkpoint = trial.best_checkpoint = f"checkpoint-{trial.number}"
        trial.checkpoint_bytes = GIGABYTE
        study.history.add_trial(trial)
    study.on_tick(1.0)
    decisions = study.history.drain().decisions
    return [trial.number for trial in trials if trial.checkpoint is not None], decisions


def over_and_waiting() -> list[Trial]:
    """The best one waits; of those that ended, the second is the worst."""
    return [
        Trial(0, State.COMPLETE, {"x": 0.5}, value=0.2),
        Trial(1, State.COMPLETE, {"x": 0.5}, value=0.9),
        Trial(2, State.PRUNED, {"x": 0.5}, value=0.4),
        Trial(3, State.PAUSED, {"x": 0.5}, value=0.1),
        Trial(4, State.PAUSED, {"x": 0.5}, value=0.8),
        Trial(5, State.PAUSED, {"x": 0.5}, value=0.3),
    ]


@pytest.mark.parametrize(
    ("max_gb", "kept"),
    [
        (6.0, [0, 1, 2, 3, 4, 5]),
        (5.9, [0, 2, 3, 4, 5]),
        (4.0, [0, 3, 4, 5]),
        (3.0, [3, 4, 5]),
        (2.0, [3, 5]),
        (1.0, [3]),
        (0.1, [3]),
    ],
)
def test_losers_that_ended_make_room_first_then_the_worst_that_wait_and_never_the_best(
    max_gb, kept
):
    assert under_limit(max_gb, *over_and_waiting())[0] == kept


def test_what_is_dropped_for_room_is_a_decision_and_who_waited_for_it_is_pruned():
    trials = over_and_waiting()
    _, decisions = under_limit(2.0, *trials)
    dropped = [decision for decision in decisions if decision.kind == "drop"]
    assert [decision.trial for decision in dropped] == [1, 2, 0]
    assert dropped[0].why == "checkpoints take 6 GB, checkpoints.max_gb is 2"
    assert [decision.trial for decision in decisions if decision.kind == "prune"] == [4]
    assert trials[4].state is State.PRUNED
    assert (trials[4].best_checkpoint, trials[4].checkpoint_bytes) == (None, None)
    assert trials[1].state is State.COMPLETE


def test_what_runs_or_is_next_is_never_dropped_and_each_that_runs_counts_as_the_largest():
    def running(number: int) -> Trial:
        attempt = Attempt(number, 1, "w", 0.0)
        return Trial(number, State.RUNNING, {"x": 0.5}, value=9.0, attempts=[attempt])

    spec = spec_with(checkpoints={"max_gb": 5.0})
    history = history_for(spec)
    largest, fresh = running(0), running(1)
    largest.checkpoint, largest.checkpoint_bytes = "somewhere", 2 * GIGABYTE
    queued = Trial(
        2,
        State.QUEUED,
        {"x": 0.5},
        value=8.0,
        checkpoint="somewhere",
        checkpoint_bytes=GIGABYTE // 2,
    )
    best = Trial(
        3,
        State.COMPLETE,
        {"x": 0.5},
        value=0.1,
        checkpoint="somewhere",
        checkpoint_bytes=GIGABYTE // 4,
    )
    loser = Trial(
        4,
        State.COMPLETE,
        {"x": 0.5},
        value=0.2,
        checkpoint="somewhere",
        checkpoint_bytes=GIGABYTE // 2,
    )
    for trial in (largest, fresh, queued, best, loser):
        history.add_trial(trial)
    dropped = Retention(spec, history).drop()
    assert [trial.number for trial, _ in dropped] == [4], "4 GB run, and the others take 1.25 GB"


def test_the_best_after_its_repeats_is_never_dropped():
    lucky, steady = (
        Trial(n, State.COMPLETE, {"x": 0.5}, value=value) for n, value in ((0, 0.1), (1, 0.2))
    )
    repeats = [
        Trial(number, State.COMPLETE, {"x": 0.5}, value=value, role=Role.CONFIRM, repeats=of)
        for number, (of, value) in enumerate([(0, 0.9), (0, 0.8), (1, 0.2), (1, 0.3)], start=2)
    ]
    assert rank([lucky, steady, *repeats], "minimize")[0].trial is steady
    numbers, _ = under_limit(1.0, lucky, steady, *repeats)
    assert numbers == [1]


def test_those_that_a_study_ended_without_are_dropped_after_losers():
    trials = over_and_waiting()
    trials[4].left_as = trials[4].state
    trials[4].state = State.PRUNED
    assert under_limit(3.0, *trials)[0] == [3, 4, 5]
    trials = over_and_waiting()
    trials[4].left_as = trials[4].state
    trials[4].state = State.PRUNED
    assert under_limit(2.0, *trials)[0] == [3, 5]


def test_of_several_objectives_nothing_that_nothing_beats_is_dropped():
    directions = [{"metric": metric, "direction": "minimize"} for metric in ("loss", "size")]
    spec = spec_with(checkpoints={"max_gb": 0.1}, objective=directions, search=search_by())
    history = history_for(spec)
    for number, values in enumerate(([1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [3.0, 3.0])):
        trial = Trial(number, State.COMPLETE, {}, value=values[0], values=values)
        trial.checkpoint, trial.checkpoint_bytes = "somewhere", GIGABYTE
        history.add_trial(trial)
    assert [trial.number for trial, _ in Retention(spec, history).drop()] == [3]


def test_without_a_limit_nothing_makes_room():
    spec = spec_with()
    history = history_for(spec)
    trial = Trial(0, State.PAUSED, {}, value=1.0, checkpoint="somewhere", checkpoint_bytes=10**15)
    history.add_trial(trial)
    assert Retention(spec, history).drop() == []


def test_a_whole_study_stays_below_its_limit(caplog, tmp_path):
    """Every event tells sizes, as a worker's do: a gigabyte while it trains, half of that while it
    waits."""
    spec = spec_with(budget=budget_of(60), checkpoints={"max_gb": 8})
    study = Simulation(spec)
    poll = study.executor.poll
    sizes = CheckpointSizes(now=GIGABYTE, waiting=GIGABYTE // 2, ended=GIGABYTE // 5)

    def with_sizes(timeout_s: float) -> list[ev.Event]:
        return [replace(e, sizes=sizes) if hasattr(e, "sizes") else e for e in poll(timeout_s)]

    study.executor.poll = with_sizes  # type: ignore[method-assign]
    sweeper = Sweeper(StudyFolder(OURS, str(tmp_path)))
    caplog.set_level("INFO", "hpsearch")
    while not study.study.finished:
        study.tick()
        taken = used_bytes(trial for trial in study.history.trials if holds(trial))
        assert taken <= 8 * GIGABYTE
        sweeper.watch(study.study, study.written[-1], 0.0)
    study.study.close(study.executor.now)
    sweeper.close()
    assert any(trial.state is State.COMPLETE for trial in study.history.trials)
    assert "its checkpoint is given up: checkpoints take" in caplog.text


def holds(trial: Trial) -> bool:
    return trial.checkpoint is not None or trial.state is State.RUNNING


def changes_of(*trials: Trial) -> Changes:
    return Changes(trials=list(trials))


def ended(number: int, **more: Any) -> Trial:
    return Trial(number, State.FAILED, {}, attempts=[Attempt(number, 1, "w", 0.0)], **more)


OURS = Mark("plain", "1")


def swept(folder: str, *, begin: Sequence[Trial] = (), watch: Sequence[Trial] = ()) -> None:
    """A driver's life: it takes in a study, and one tick writes some trials."""
    sweeper = Sweeper(StudyFolder(OURS, folder))
    sweeper.begin(list(begin))
    sweeper.watch(brain(spec_with()), changes_of(*watch), 0.0)
    sweeper.close()


def filled(folder: str, *numbers: int) -> None:
    """Give trials some files in a folder."""
    for number in numbers:
        folder_at(inside(folder, trial_folder(number))).write("weights", "x" * 1000)


@pytest.fixture(params=["path", "memory"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder with the study's mark, and files of the trials 3 and 4."""
    folder = f"{tmp_path}/home" if request.param == "path" else f"memory://{uuid.uuid4().hex}/home"
    filled(folder, 3, 4)
    StudyFolder(OURS, folder).claim()
    return folder


def test_files_of_trials_that_keep_nothing_are_removed_and_others_stay(home):
    swept(home, watch=[ended(3), ended(4, checkpoint="kept")])
    assert trials_in(home) == [4]


def test_what_a_trial_has_written_into_its_working_directory_stays(tmp_path):
    filled(str(tmp_path), 3, 4)
    StudyFolder(OURS, str(tmp_path)).claim()
    kept, empty = tmp_path / trial_folder(3), tmp_path / trial_folder(5)
    empty.mkdir()
    for folder in (kept, empty):
        (folder / WORKING).touch()
    checkpoints = Checkpoints(kept)
    with checkpoints.drafting() as draft:
        (draft / "weights").write_text("x")
    checkpoints.commit(draft, Label(1.0, is_best=True))
    swept(str(tmp_path), watch=[ended(3), ended(4), ended(5)])
    assert {path.name for path in kept.iterdir()} == {WORKING, "weights"}
    assert trials_in(str(tmp_path)) == [3]


def test_what_a_driver_that_died_had_not_removed_the_next_one_does(home):
    swept(home, begin=[ended(3)])
    assert trials_in(home) == [4]


@pytest.mark.parametrize("mark", [None, Mark("plain", "another")])
def test_a_folder_without_the_studys_mark_is_never_touched(tmp_path, mark):
    folder = str(tmp_path / "shared")
    filled(folder, 3, 4)
    if mark is not None:
        StudyFolder(mark, folder).claim()
    swept(folder, begin=[ended(3)], watch=[ended(4)])
    assert trials_in(folder) == [3, 4]


# ---------------------------------------------------------------------------------------- stores
# that have trouble


class TroubledStore(MemoryFileSystem):
    """A store that counts what it is asked, and whose errors are of no kind that this program
    knows."""

    protocol = "troubled"
    calls: ClassVar[Counter[str]] = Counter()
    refuses: ClassVar[set[str]] = set()

    class Refused(Exception):
        """As botocore's and aiohttp's: not an OSError."""

    def _asked(self, what: str, path: object) -> None:
        self.calls[what] += 1
        if any(f"{what} {part}" in self.refuses for part in str(path).split("/")):
            raise self.Refused(f"{what} throttled")

    def exists(self, path: str, **more: Any) -> bool:
        self._asked("exists", path)
        return bool(super().exists(path, **more))

    def ls(self, path: str, detail: bool = True, **more: Any) -> Any:
        self._asked("ls", path)
        return super().ls(path, detail, **more)

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        self._asked("rm", path)
        super().rm(path, recursive, maxdepth)


@pytest.fixture
def troubled() -> Iterator[str]:
    """A folder with the study's mark in such a store."""
    fsspec.register_implementation("troubled", TroubledStore, clobber=True)
    folder = f"troubled://{uuid.uuid4().hex}/home"
    filled(folder, 3, 4, 5)
    StudyFolder(OURS, folder).claim()
    TroubledStore.calls.clear()
    yield folder
    TroubledStore.refuses.clear()


def test_what_a_store_does_not_remove_stops_nothing_and_goes_with_the_next_driver(troubled, caplog):
    TroubledStore.refuses.add("rm trial-00003")
    swept(troubled, watch=[ended(3), ended(4)])
    assert trials_in(troubled) == [3, 5]
    (said,) = [record.getMessage() for record in caplog.records]
    assert f"could not be removed from {troubled}: Refused: rm throttled - the next" in said
    TroubledStore.refuses.clear()
    swept(troubled, begin=[ended(3), ended(4)])
    assert trials_in(troubled) == [5]


def test_a_resume_asks_the_store_once_for_all_that_went_before(troubled):
    gone = [ended(number) for number in range(1000) if number not in (4, 5)]
    swept(troubled, begin=gone)
    assert trials_in(troubled) == [4, 5]
    assert TroubledStore.calls["rm"] == 1
    assert TroubledStore.calls.total() < 10
    TroubledStore.calls.clear()
    swept(troubled, begin=gone)
    assert TroubledStore.calls == {"ls": 1}


# ------------------------------------------------------------------------------------------------
# several objectives


def test_with_several_objectives_the_front_is_kept_first_and_no_more_than_so_many(monkeypatch):
    monkeypatch.setattr(retention, "FRONT", 8)
    spec = spec_with(
        objective=[
            {"metric": "loss", "direction": "minimize"},
            {"metric": "speed", "direction": "maximize"},
        ],
        search={"sampler": "random"},
    )
    history = history_for(spec)
    decide = Retention(spec, history)
    kept: list[int] = []
    for number in range(60):
        row, column = divmod(number, 6)  # ten fronts of six trials, the best of them last
        values = [10.0 - row + column / 6, float(row) + column / 6]
        history.add_trial(
            Trial(
                number, State.COMPLETE, {}, value=values[0], values=values, checkpoint="somewhere"
            )
        )
        decide.drop()
        kept = [trial.number for trial in history.trials if trial.checkpoint is not None]
        assert len(kept) == min(8, number + 1)
    assert set(range(54, 60)) < set(kept)
    assert set(kept) - set(range(54, 60)) == {48, 53}, "the ends of the second front"


def test_of_a_front_that_is_too_large_its_breadth_is_kept():
    line = [
        Trial(n, State.COMPLETE, {}, value=float(n), values=[float(n), -float(n)])
        for n in range(101)
    ]
    chosen = sorted(trial.number for trial in foremost(line, ["minimize", "minimize"], 2))
    assert chosen == [0, 100]


def test_trials_that_keep_the_limits_stand_before_those_that_do_not_and_unmeasured_ones_last():
    over = Trial(
        0,
        State.COMPLETE,
        {},
        value=0.0,
        values=[0.0, 0.0],
        system_attrs={f"{CONSTRAINT}memory": 1.0},
    )
    within = Trial(1, State.COMPLETE, {}, value=5.0, values=[5.0, 5.0])
    nothing = Trial(2, State.PRUNED, {})
    ordered = foremost([nothing, over, within], ["minimize", "minimize"], 3)
    assert [trial.number for trial in ordered] == [1, 0, 2]
