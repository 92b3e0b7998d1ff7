"""The history of a function's reports: findings, and the best checkpoint."""

import pytest

from support.running.function_runs import items_of, reporting, reports_of, run_of
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.manifests import verify
from trials.checkpoints.trimming import trim_ended
from trials.contract import Goal


def found(tmp_path, *reports):
    run = run_of(reporting(*reports, save=False), tmp_path, total=float(len(reports)))
    reports_of(run)
    return {finding.name: finding.evidence for finding in run.findings()}


def test_a_function_is_told_what_its_reports_show(tmp_path):
    rising = [{"train_loss": 1 / n, "val_loss": abs(n - 4) + 1.0} for n in range(1, 10)]
    assert (
        "since report 4 the validation loss rose from 1 to 6"
        in found(tmp_path, *rising)["overfitting"]
    )
    flat = [{"accuracy": 0.5, "loss": 0.7}] * 8
    assert (
        found(tmp_path, *flat)["plateau"]
        == "the validation loss was 0.7 by report 1, and 0.7 at best after"
    )
    broken = [{"train_loss": 1.0}, {"train_loss": float("nan")}]
    assert found(tmp_path, *broken)["divergence"] == "the training loss became nan at report 2"


def test_what_a_function_does_not_always_report_is_not_judged(tmp_path):
    assert found(tmp_path, *[{"accuracy": 0.1}] * 30) == {}
    assert found(tmp_path, *[{"loss": 0.7}] * 7, {"accuracy": 0.1}) == {}


def test_the_history_goes_on_in_the_next_attempt(tmp_path):
    reports = [{"train_loss": 1 / n, "loss": abs(n - 3) + 1.0} for n in range(1, 12)]
    first = run_of(reporting(*reports), tmp_path, total=11.0)
    items = items_of(first)
    saved = [next(items) for _ in range(6)][-1].checkpoint
    first.close()
    second = run_of(reporting(*reports), tmp_path, total=11.0, resume_from=saved)
    reports_of(second)
    (finding,) = second.findings()
    assert "since report 3 the validation loss rose from 1 to 9" in finding.evidence
    second.close()


ACCURACIES = [{"accuracy": value} for value in (0.1, 0.9, 0.3, 0.4, 0.5, 0.6)]


@pytest.mark.parametrize(("maximize", "best"), [(True, 2), (False, 1)])
def test_the_best_checkpoint_by_the_objective_stays(tmp_path, maximize, best):
    run = run_of(reporting(*ACCURACIES), tmp_path, total=6.0, goal=Goal("accuracy", maximize))
    for report in reports_of(run):
        run.recorded(report.resource)
    run.close()
    checkpoints = Checkpoints(tmp_path / "trial")
    assert (checkpoints.best / "done").read_text() == str(best)
    verify(checkpoints.best)
    assert sorted(path.name for path in (tmp_path / "trial").glob("epoch-*")) == [
        f"epoch-{number}" for number in (best, 5, 6)
    ]


def test_of_a_trial_that_has_ended_the_files_that_only_continue_it_are_removed(tmp_path):
    def train(params, trial):
        with trial.save(state=["optimizer", "not_written"]) as folder:
            (folder / "optimizer").write_text("moments")
            (folder / "model").write_text("weights")
        trial.report(1, {"accuracy": 1.0})

    run = run_of(train, tmp_path, goal=Goal("accuracy", maximize=True))
    (report,) = reports_of(run)
    run.close()
    verify(report.checkpoint, whole=True)
    trim_ended(report.checkpoint)
    verify(report.checkpoint)
    assert (report.checkpoint / "model").is_file()
    assert not (report.checkpoint / "optimizer").exists()


def test_a_best_that_is_surpassed_stays_until_the_better_one_is_on_record(tmp_path):
    reports = [{"accuracy": value} for value in (0.9, 0.1, 0.2, 0.3, 0.95)]
    run = run_of(reporting(*reports), tmp_path, total=5.0, goal=Goal("accuracy", maximize=True))
    told = reports_of(run)
    run.recorded(4.0)
    assert told[0].checkpoint.is_dir()
    run.recorded(5.0)
    assert not told[0].checkpoint.is_dir()
    assert Checkpoints(tmp_path / "trial").best == told[4].checkpoint


@pytest.mark.parametrize("place", ["path", "url"])
def test_the_best_of_an_earlier_attempt_counts_in_the_next(tmp_path, place):
    folder = tmp_path / "trial" if place == "path" else f"memory://{tmp_path.name}/trial"
    more = {"total": 6.0, "goal": Goal("accuracy", maximize=True), "folder": folder}
    first = run_of(reporting(*ACCURACIES), tmp_path, **more)
    items = items_of(first)
    reports = [next(items) for _ in range(3)]
    first.close()
    second = run_of(reporting(*ACCURACIES), tmp_path, resume_from=reports[-1].checkpoint, **more)
    reports_of(second)
    second.close()
    assert Checkpoints(folder).best == reports[1].checkpoint


def test_a_best_that_the_attempt_it_continues_knew_nothing_of_does_not_count(tmp_path):
    more = {"total": 2.0, "goal": Goal("accuracy", maximize=True)}
    first = reports_of(run_of(reporting(*ACCURACIES[:2]), tmp_path, **more))
    worse = [ACCURACIES[0], {"accuracy": 0.2}]
    again = reports_of(run_of(reporting(*worse), tmp_path, resume_from=first[0].checkpoint, **more))
    assert Checkpoints(tmp_path / "trial").best == again[0].checkpoint


@pytest.mark.parametrize("later", [(0.4, 0.3), (0.15, 0.1)])
def test_a_best_that_is_damaged_does_not_count_in_the_next_attempt(tmp_path, later):
    more = {"total": 4.0, "goal": Goal("accuracy", maximize=True)}
    rising = [{"accuracy": value} for value in (0.1, 0.2, 0.9)]
    first = reports_of(run_of(reporting(*rising), tmp_path, **more))
    (first[2].checkpoint / "done").write_text("damaged")
    worse = [*rising[:2], *({"accuracy": value} for value in later)]
    run = run_of(reporting(*worse), tmp_path, resume_from=first[2].checkpoint, **more)
    again = reports_of(run)
    best = again[0] if later[0] > 0.2 else first[1]
    assert [report.resource for report in again] == [3.0, 4.0]
    assert [report.best for report in again] == [best.checkpoint] * 2
    verify(Checkpoints(tmp_path / "trial").best)
    assert Checkpoints(tmp_path / "trial").best == best.checkpoint
