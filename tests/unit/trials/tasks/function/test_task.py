"""Training functions of the user's own: how they are found, and what they are given."""

import pickle
from pathlib import Path

from support.running.function_runs import problem_of, reports_of, setup_in
from trials import tasks
from trials.running.runner import Runner


def test_a_function_is_found_in_the_study_files_folder_and_given_its_args(tmp_path, module):
    base = module("def train(params, trial):\n    trial.report(1, params)\n")
    task = tasks.load({"kind": "their_training:train", "args": {"a": 1, "b": 2}}, base)
    run = task.start(setup_in(tmp_path, params={"b": 3}), task.prepare({}))
    assert reports_of(run)[0].metrics == {"a": 1.0, "b": 3.0}
    assert pickle.loads(pickle.dumps(task)).start(setup_in(tmp_path), None).finished is None


def test_a_module_or_function_that_is_not_there_is_told(tmp_path, module):
    assert problem_of("nowhere.at_all:train", tmp_path) == (
        f"no module named 'nowhere'; it must be in {tmp_path} or be installed"
    )
    base = module("def train(params, trial): ...\nclass Train: ...\ndef bare(needed): ...\n")
    assert (
        problem_of("their_training:trian", base)
        == "their_training has no function 'trian'; did you mean train?"
    )
    assert "is not a function; write def Train(params, trial)" in problem_of(
        "their_training:Train", base
    )
    assert "bare(needed) cannot be called with (params, trial)" in problem_of(
        "their_training:bare", base
    )


def test_a_module_that_fails_on_import_is_told(tmp_path, module):
    base = module("import not_installed_anywhere\n")
    assert "No module named 'not_installed_anywhere'; fix the module" in problem_of(
        "their_training:train", base
    )
    base = module("1 / 0\n")
    assert "importing their_training failed: ZeroDivisionError" in problem_of(
        "their_training:train", base
    )


def test_a_module_whose_error_has_no_text_is_told(tmp_path, module):
    mute = "class Mute(Exception):\n    def __str__(self):\n        raise self\n\n"
    base = module(f"{mute}raise Mute\n")
    told = problem_of("their_training:train", base)
    assert "importing their_training failed: their_training.Mute: (it has no text" in told
    base = module("raise RuntimeError('x' * 20_000_000)\n")
    assert len(problem_of("their_training:train", base)) < 3_000


def test_an_unknown_key_of_a_function_task_is_told(tmp_path):
    (problem,) = tasks.inspect({"kind": "their_training:train", "arg": {}}, tmp_path)
    assert problem.where == "task.arg"
    assert "did you mean args?" in problem.what


def test_the_digits_example_learns_and_continues(tmp_path):
    examples = Path(__file__).parents[5] / "examples"
    task = tasks.load({"kind": "digits:train"}, examples)
    params = {"width": 64, "dropout": 0.1, "learning_rate": 1e-2, "batch_size": 64}
    first = Runner(task, None, setup_in(tmp_path, total=4.0, params=params))
    reports = list(first.advance(until=2.0))
    saved = first.save()
    first.close()
    assert [r.resource for r in reports] == [1.0, 2.0]
    second = Runner(task, None, setup_in(tmp_path, total=4.0, params=params, resume_from=saved))
    reports = list(second.advance(until=4.0))
    assert [r.resource for r in reports] == [3.0, 4.0]
    assert reports[-1].metrics["accuracy"] > 0.9
    second.close()


def test_a_script_in_a_folder_finds_what_lies_beside_it(tmp_path, module):
    base = module("")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside_it.py").write_text("LOSS = 0.5")
    lines = (
        "import beside_it",
        "from trials.script import trial",
        "trial.report(3, {'loss': beside_it.LOSS})",
    )
    (tmp_path / "scripts" / "theirs.py").write_text("\n".join(lines))
    task = tasks.load({"kind": "scripts.theirs:__main__"}, base)
    (report,) = reports_of(task.start(setup_in(tmp_path), None))
    assert report.metrics == {"loss": 0.5}
