"""A run continues from the newest whole checkpoint of its stretch."""

import dataclasses
import uuid

import pytest

from support.files.checkpoints import content, drafted, files_of, filled, harmed, saved, three_saved
from support.running.function_runs import run_in_thread
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened, opened_on_ranks
from trials.checkpoints.folders import inside
from trials.checkpoints.manifests import CheckpointError, Label
from trials.checkpoints.trimming import trim_waiting


@pytest.mark.parametrize("harm", ["truncated", "flipped", "no manifest", "file gone", "empty"])
def test_damage_is_recognised_and_the_one_before_is_used(folder, harm, caplog):
    checkpoints = Checkpoints(folder)
    saved(checkpoints, 1, filled("a"))
    second = saved(checkpoints, 2, filled("b"))
    harmed(second, harm)
    assert content(second) == "a"
    assert content(inside(folder, "last")) == "a"
    assert "continuing from step-1" in caplog.text


def test_a_missing_checkpoint_falls_back_too(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first = saved(checkpoints, 1, filled("a"))
    with opened(tmp_path / "step-9") as checkpoint:
        assert checkpoint.files == checkpoint.path == first
    nowhere = opened(tmp_path / "nowhere" / "step-1")
    with pytest.raises(CheckpointError, match="start the trial afresh"), nowhere:
        pass


def test_with_nothing_whole_left_the_error_says_so(folder):
    only = saved(Checkpoints(folder), 1, filled("a"))
    harmed(only, "flipped")
    with pytest.raises(
        CheckpointError, match="weights was changed or cut short; there is none before it"
    ):
        content(only)


def test_those_of_one_stretch_stand_for_each_other_and_the_newest_wins(folder):
    checkpoints = Checkpoints(folder)
    named = checkpoints.commit(drafted(checkpoints, filled("a")), Label(1, stretch="x after 1"))
    checkpoints.commit(drafted(checkpoints, filled("b")), Label(2, stretch="x after 1"))
    newest = checkpoints.commit(drafted(checkpoints, filled("c")), Label(3, stretch="x after 1"))
    checkpoints.commit(drafted(checkpoints, filled("d")), Label(4, stretch="x after 2"))
    assert content(named) == "c"
    harmed(newest, "flipped")
    assert content(named) == "b"


def test_nobody_continues_from_weights_alone(folder, caplog):
    _, (best, second, newest) = three_saved(folder)
    trim_waiting(second, best)
    for damaged in (second, newest):
        files, root = files_of(damaged)
        files.rm_file(f"{root}/weights")
    with (
        pytest.raises(CheckpointError, match=r"step-1 is damaged: state\.pt is missing"),
        opened(newest),
    ):
        pass


def counting(params, trial):
    params["places"].append(trial.checkpoint)
    start = int((trial.checkpoint / "done").read_text()) if trial.checkpoint else 0
    for epoch in range(start + 1, 5):
        with trial.save() as draft:
            (draft / "done").write_text(str(epoch))
        trial.report(epoch, {"epoch": epoch})


def test_a_training_function_continues_from_a_store(lab):
    url = f"memory://{uuid.uuid4().hex}/trial"

    def run(resume_from=None):
        setup = dataclasses.replace(lab.setup("unused", {"epochs": 4}, resume_from), folder=url)
        return run_in_thread(counting, setup, params={"places": places})

    places = []
    first = run()
    items = (item for item in first if item is not None)
    reports = [next(items), next(items)]
    first.close()
    second = run(reports[1].checkpoint)
    assert [item.resource for item in second if item] == [3.0, 4.0]
    _, downloaded = places
    assert downloaded.is_dir()
    second.close()
    assert not downloaded.exists()


def test_a_run_in_a_store_resumes_bit_for_bit(lab, without_timings):
    task = lab.task()
    data = task.prepare({})
    url = f"memory://{uuid.uuid4().hex}/trial"

    def start(resume_from=None):
        setup = dataclasses.replace(
            lab.setup("unused", {"epochs": 3}, resume_from, dropout=0.3), folder=url
        )
        return task.start(setup, data)

    reports = [item for item in start() if item]
    assert str(reports[0].checkpoint).startswith(url)
    again = start(reports[0].checkpoint)
    assert without_timings([item for item in again if item]) == without_timings(reports[1:])


def test_a_rank_continues_from_what_rank_0_has_found_or_says_that_it_cannot(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    first, second = saved(checkpoints, 1, filled("a")), saved(checkpoints, 2, filled("b"))
    harmed(second, "flipped")
    said = []

    def tell(find):
        said.append(find())
        return said[-1]

    with opened_on_ranks(second, 0, tell) as of_first:
        assert of_first.path == first
    with opened_on_ranks(second, 1, lambda find: said[-1]) as of_other:
        assert of_other.path == first
    elsewhere = opened_on_ranks(second, 1, lambda find: str(tmp_path / "unseen" / "step-1"))
    with pytest.raises(RuntimeError, match=r"rank 1 cannot .* all nodes share"), elsewhere:
        pass
    harmed(first, "flipped")
    for rank in (0, 1):
        nothing = opened_on_ranks(second, rank, tell if rank == 0 else lambda find: said[-1])
        with pytest.raises(CheckpointError), nothing:
            pass
    assert said == [str(first), None]
