"""Attempts of real programs: reports, ends, checkpoints, and what they are told."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from support.patience import wait_until
from support.running.command_runs import (
    GATED,
    Gate,
    first_of,
    log_of,
    reports_of,
    shell,
    state_of,
)
from trials import tasks
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.manifests import verify
from trials.contract import Budget, Fold, Goal, ProgramFailed, Setup, TaskError, Unit
from trials.running.runner import failure_of
from trials.tasks.command.run import CommandRun

COUNTING = f"""{GATED}
folder, total = sys.argv[1], int(sys.argv[2])
state = os.path.join(folder, "state")
done = int(open(state).read()) if os.path.exists(state) else 0
print("begins after", done)
for epoch in range(done + 1, total + 1):
    wait_before(epoch)
    with open(state + ".new", "w") as file:
        file.write(str(epoch))
    os.replace(state + ".new", state)
    while os.path.exists(f"silent-{{epoch}}"):
        time.sleep(0.005)
    print(json.dumps({{"resource": epoch, "accuracy": epoch / 10, "phase": "validation"}}))
"""
"""Continues from its folder. It waits for its gate before an epoch, and to report it while there is
the file `silent-` of the epoch."""


def echoing(*lines: str) -> str:
    """A command that prints these lines."""
    return "printf '%s\\n' " + " ".join(
        f"'{line.replace('{', '{{').replace('}', '}}')}'" for line in lines
    )


def failure(run: Any) -> str:
    with pytest.raises(ProgramFailed) as caught:
        reports_of(run)
    return str(caught.value)


# --------------------------------------------------------------------------------------------------
# reports


def test_reports_are_lines_of_json_and_the_rest_is_the_log(start, tmp_path):
    lines = ["begins", '{"resource": 1, "a": 0.5}', '{"no": 1}', "[1]", '{"resource": 3, "a": 1}']
    run = start(echoing(*lines))
    reports = reports_of(run)
    assert [(r.resource, dict(r.metrics)) for r in reports] == [
        (1.0, {"a": 0.5}),
        (3.0, {"a": 1.0}),
    ]
    assert run.finished == "budget used"
    assert log_of(tmp_path).splitlines()[1:] == ["begins", '{"no": 1}', "[1]"]


def test_what_goes_to_standard_error_is_log_and_breaks_no_report(start, python, tmp_path):
    program = python(
        "sys.stderr.write('\\r 50%'); sys.stderr.flush()\n"
        "print(json.dumps({'resource': 3, 'a': 1}))\n"
        "sys.stderr.write('\\r100%\\n' + json.dumps({'resource': 4}) + '\\n')\n"
    )
    assert len(reports_of(start(program))) == 1
    assert '100%\n{"resource": 4}\n' in log_of(tmp_path)


def test_reports_may_be_in_a_file_under_another_key(start):
    run = start(
        shell(
            "for n in 1 2 3; do mkdir -p {folder}/logs;"
            ' echo "{{\\"epoch\\": $n, \\"loss\\": $n}}" >> {folder}/logs/metrics.jsonl;'
            " done;"
            ' echo "{{\\"epoch\\": 9, \\"loss\\": 0}}"'
        ),
        reports="logs/metrics.jsonl",
        resource="epoch",
    )
    assert [r.metrics["loss"] for r in reports_of(run)] == [1.0, 2.0, 3.0]


def test_a_last_line_without_an_end_counts(start):
    run = start('printf \'{{"resource": 3, "a": 1}}\'')
    assert len(reports_of(run)) == 1


def test_the_command_is_given_what_it_asks_for(start, python, tmp_path):
    program = python(
        "print(json.dumps(sys.argv[1:]))\nprint(json.load(open(sys.argv[5])))\n"
        "print(json.dumps({'resource': 3, 'a': 1}))\n"
    )
    run = start(
        f"{program} {{x}} {{budget}} {{seed}} {{folder}} {{params}} --resume {{resume}}",
        params={"x": 0.25, "hidden": "b"},
    )
    reports_of(run)
    words, params = log_of(tmp_path).splitlines()[1:]
    x, budget, seed, folder, _ = json.loads(words)
    assert (x, budget, seed) == ("0.25", "3", "5")
    assert folder.startswith(str(tmp_path / "trial" / "attempt-1-"))
    assert params == "{'x': 0.25, 'hidden': 'b'}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"resource": "one", "a": 1}', "resource must be a number, not 'one'"),
        ('{"resource": true, "a": 1}', "resource must be a number, not True"),
        ('{"resource": null, "a": 1}', "resource must be a number, not None"),
        ('{"resource": NaN, "a": 1}', "resource nan is not finite"),
        ('{"resource": 0, "a": 1}', "has a resource of 0"),
        ('{"resource": 1e308, "a": 1}', "resource 1e+308 is above"),
        ('{"resource": 1, "$a": 1}', "cannot be named '$a'"),
        ('{"resource": 1, "a": 1' + "0" * 400 + "}", "a is too large for a float"),
        ('{"resource": 2, "a": 1}\n{"resource": 2}', "reported 2 after 2: the resource must rise"),
        ('{"resource": 2, "a": 1}\n{"resource": 1}', "reported 1 after 2: the resource must rise"),
    ],
)
def test_a_wrong_report_says_what_is_wrong(start, line, said):
    assert said in failure(start(echoing(*line.split("\n"))))


@pytest.mark.parametrize("line", ['{"resource": 1, ', '{"resource": 1} tail', "resource: 1"])
def test_a_line_that_is_no_json_is_log(start, line):
    assert "without a report" in failure(start(echoing(line)))


def test_a_very_long_line_is_log(start, python):
    program = python("print('x' * 3_000_000)\nprint(json.dumps({'resource': 3, 'a': 1}))\n")
    assert len(reports_of(start(program))) == 1


def test_a_program_that_is_not_there_is_a_mistake_in_the_study_file(tmp_path):
    (tmp_path / "train.sh").write_text("echo")
    for run, said in (
        ("no-such-program x", "there is no program 'no-such-program' on the PATH"),
        ("./none.sh", f"there is no program './none.sh' in {tmp_path}"),
        ("./train.sh", "train.sh is not executable"),
    ):
        (problem,) = tasks.inspect({"kind": "command", "run": run}, tmp_path)
        assert (problem.where, said in problem.what) == ("task.run", True), problem.what


def test_a_program_that_vanishes_says_so(start, tmp_path):
    (tmp_path / "train.sh").write_text("#!/bin/sh\n")
    (tmp_path / "train.sh").chmod(0o755)
    run = start("./train.sh")
    (tmp_path / "train.sh").unlink()
    assert "cannot be started: No such file or directory" in failure(run)


def test_an_error_has_the_exit_code_and_the_last_line_and_details(start, python):
    run = start(python("print(json.dumps({'resource': 1, 'a': 1}))\nraise KeyError('theirs')\n"))
    with pytest.raises(ProgramFailed) as caught:
        reports_of(run)
    told = failure_of(caught.value)
    assert told.kind == "error"
    assert told.text == (
        "the command ended with exit code 1 after its report at 1, before its budget of 3 epochs: "
        "KeyError: 'theirs'"
    )
    assert "Traceback" in told.details


def test_an_error_tells_whether_memory_or_disk_ran_out(start):
    for last, kind in (
        ("torch.OutOfMemoryError: CUDA out of memory.", "out_of_memory"),
        ("OSError: [Errno 28] No space left on device", "disk_full"),
    ):
        run = start(shell(f"echo '{last}' >&2; exit 1"))
        with pytest.raises(ProgramFailed) as caught:
            reports_of(run)
        assert failure_of(caught.value).kind == kind


def test_a_program_that_ends_well_has_ended_unless_the_task_says_otherwise(start):
    early = echoing('{"resource": 1, "a": 1}')
    run = start(early)
    assert len(reports_of(run)) == 1
    assert run.finished == "the command ended by itself at 1 of 3 epochs"
    assert failure(start(early, ends_early=False)) == (
        "the command ended with exit code 0 after its report at 1, before its budget of 3 epochs; "
        "it may end there without ends_early: false in the task"
    )
    assert "without a report" in failure(start("true"))


def test_an_error_after_the_last_report_costs_nothing(start):
    run = start(shell('echo \'{{"resource": 3, "a": 1}}\'; exit 7'))
    assert len(reports_of(run)) == 1
    assert run.finished == "budget used, and then the command ended with exit code 7"


def test_what_is_written_after_the_last_report_is_kept(start, python, gate):
    gate.open_to(0)
    program = python(
        GATED + "print(json.dumps({'resource': 3, 'a': 1}))\nwait_before(1)\n"
        "open(os.path.join(sys.argv[1], 'model'), 'w').write('final')\n"
    )
    run = start(f"{program} {{folder}}", goal=Goal("a", maximize=True))
    items = iter(run)
    next(item for item in items if item is not None)
    gate.open()
    assert list(filter(None, items)) == []
    assert (Path(str(run.best)) / "folder" / "model").read_text() == "final"
    verify(Path(str(run.best)))


def test_a_program_that_trains_past_its_budget_is_ended(start, python):
    run = start(
        python(
            "for n in range(1, 999):\n print(json.dumps({'resource': n, 'a': n}))\n"
            " time.sleep(0.05)\n"
        )
    )
    assert [r.resource for r in reports_of(run)] == [1.0, 2.0, 3.0]
    assert run.finished == "budget used"
    assert [finding.name for finding in run.findings()] == ["beyond_budget"]


# --------------------------------------------------------------------------------------------------
# pausing and continuing


def saved_after(run: CommandRun, gate: Gate, reports: int, ahead: int) -> Path:
    """Its checkpoint at a report, when its program has run ahead to another one."""
    gate.open_to(ahead)
    items = iter(run)
    for _ in range(reports):
        report = next(item for item in items if item is not None)
    assert report.resource == reports
    gate.wait_for(ahead + 1)
    saved = run.save()
    assert saved is not None
    run.close()
    gate.open()
    return Path(str(saved))


def test_a_paused_trial_finds_its_folder_again(start, python, gate, tmp_path):
    program = python(COUNTING) + " {folder} {budget} --resume {resume}"
    first = start(program, total=6.0)
    saved = saved_after(first, gate, reports=1, ahead=3)
    second = start(program, total=6.0, resume_from=saved, attempt=2)
    reports = [r.resource for r in reports_of(second)]
    assert reports == [2.0, 3.0, 4.0, 5.0, 6.0], "also those that it had run ahead to"
    log = log_of(tmp_path, 2)
    assert "--resume" in log
    assert "begins after 0" not in log
    second.close()
    assert not list((tmp_path / "trial").glob("attempt-*")), "nothing of the attempts is left"


def test_at_a_rung_the_program_is_suspended_and_goes_on(start, python, gate):
    gate.open_to(2)
    run = start(python(COUNTING) + " {folder} {budget}", total=6.0)
    items = iter(run)
    next(item for item in items if item is not None)
    saved = run.save()
    assert run.save() == saved
    assert run._program is not None
    assert run._program._suspended
    assert {state_of(process) for process in run._program._suspended} == {"T"}
    gate.open()
    assert [item.resource for item in items if item is not None] == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert run.finished == "budget used"


def test_a_stopped_program_may_save_before_it_ends(start, python, tmp_path):
    program = python(
        "def end(*_):\n open(os.path.join(sys.argv[1], 'state'), 'w').write('saved at the end')\n"
        " sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print(json.dumps({'resource': 1, 'a': 1}))\nwhile True: signal.pause()\n"
    )
    run = start(program + " {folder}")
    items = iter(run)
    next(item for item in items if item is not None)
    assert next(items) is None
    saved = run.save()
    assert (Path(str(saved)) / "folder" / "state").read_text() == "saved at the end"
    assert list(items) == []
    assert "sent SIGTERM: its trial is stopped" in log_of(tmp_path)


def test_a_program_that_ignores_the_signal_is_killed_and_its_complete_files_are_kept(
    start, python, tmp_path, monkeypatch
):
    monkeypatch.setattr("trials.tasks.command.run.GRACE_S", 0.3)
    program = python(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open(os.path.join(sys.argv[1], 'state'), 'w').write('whole')\n"
        "if len(sys.argv) > 2: file = open(os.path.join(sys.argv[1], 'half'), 'w')\n"
        "print(json.dumps({'resource': 1, 'a': 1}))\n"
        "while True: signal.pause()\n"
    )
    for options, is_kept in (("", True), (" half", False)):
        run = start(program + " {folder}" + options)
        items = iter(run)
        next(item for item in items if item is not None)
        assert next(items) is None
        assert (run.save() is not None) == is_kept
        assert "killed: it did not end within 0.3 s" in log_of(tmp_path)
    assert "half is open for writing" in log_of(tmp_path)


def test_a_file_that_is_being_written_at_a_rung_is_waited_for(start, python, tmp_path):
    program = python(
        "goes_on = []\n"
        "signal.signal(signal.SIGCONT, lambda *_: goes_on.append(True))\n"
        "print(json.dumps({'resource': 1, 'a': 1}))\n"
        "log = open(os.path.join(sys.argv[1], 'log'), 'a')\n"
        "with open(os.path.join(sys.argv[1], 'state'), 'w') as file:\n"
        " file.write('half '); file.flush()\n"
        " open('half-written', 'w').close()\n"
        " while not goes_on: time.sleep(0.005)\n"
        " file.write('whole')\n"
        "print(json.dumps({'resource': 3, 'a': 1}))\n"
    )
    run = start(program + " {folder}")
    items = iter(run)
    next(item for item in items if item is not None)
    wait_until((tmp_path / "half-written").exists)
    saved = Path(str(run.save())) / "folder"
    assert (saved / "state").read_text() == "half whole"
    assert [item.resource for item in items if item is not None] == [3.0]


def test_a_program_that_writes_nothing_starts_afresh(start, python):
    run = start(echoing(*(f'{{"resource": {n}, "a": 1}}' for n in (1, 2, 3))))
    first_of(run)
    assert run.save() is None, "so the trial has no checkpoint, and is charged again"


def test_a_program_that_is_said_not_to_continue_has_no_checkpoint_until_its_end(start, python):
    run = start(python(COUNTING) + " {folder} {budget}", resumes=False)
    items = iter(run)
    next(item for item in items if item is not None)
    assert run.save() is None
    list(items)
    assert Checkpoints(Path(str(run._folder._trial))).last is not None


def test_a_program_that_begins_again_is_found_out_and_its_repeats_do_not_count(
    start, python, gate, tmp_path
):
    forgetful = python(
        GATED + "for n in range(1, 6):\n"
        " wait_before(n)\n"
        " open(os.path.join(sys.argv[1], 'state'), 'w').write(str(n))\n"
        " print(json.dumps({'resource': n, 'a': n}))\n"
    )
    first = start(forgetful + " {folder}", total=5.0)
    saved = saved_after(first, gate, reports=2, ahead=2)
    again = start(forgetful + " {folder}", total=5.0, resume_from=saved, attempt=2)
    assert [r.resource for r in reports_of(again)] == [3.0, 4.0, 5.0]
    (finding,) = [each for each in again.findings() if each.name == "began_again"]
    assert "reported 1 first" in finding.evidence
    assert "the report at 1 is of a part that was reported before" in log_of(tmp_path, 2)


def test_a_report_file_that_is_continued_is_read_on(start, python, gate, tmp_path):
    for begins in ("pass", "open(folder + '/log', 'w').close()"):  # a new file each time
        into_file = "file=open(folder + '/log', 'a'), flush=True)"
        text = COUNTING.replace("}))", "}), " + into_file).replace(
            'print("begins', f'{begins}; print("begins'
        )
        program = python(text) + " {folder} {budget}"
        first = start(program, total=5.0, reports="log")
        saved = saved_after(first, gate, reports=2, ahead=3)
        again = start(
            program, total=5.0, reports="log", resume_from=saved, folder=tmp_path / str(len(begins))
        )
        assert [report.resource for report in reports_of(again)] == [3.0, 4.0, 5.0]
        assert not [each for each in again.findings() if each.name == "began_again"]


def test_a_stale_program_spoils_nothing(start, python, gate, tmp_path):
    gate.open_to(1)
    program = python(COUNTING) + " {folder} {budget}"
    stale = start(program, total=50.0)
    items = iter(stale)
    next(item for item in items if item is not None)
    saved = stale.save()
    gate.open()
    next(items)
    second = start(program, total=3.0, resume_from=saved, attempt=2)
    reports_of(second)
    assert (Path(str(second._folder.newest)) / "folder" / "state").read_text() == "3"


@pytest.mark.parametrize("kind", ["path", "url"])
def test_a_folder_may_go_to_a_store(start, python, tmp_path, kind):
    folder = tmp_path / "trial" if kind == "path" else f"memory://{tmp_path.name}/trial"
    program = python(COUNTING) + " {folder} {budget}"
    first = start(program, total=4.0, folder=folder)
    items = iter(first)
    next(item for item in items if item is not None)
    saved = first.save()
    first.close()
    second = start(program, total=4.0, folder=folder, resume_from=saved, attempt=2)
    assert reports_of(second)[-1].resource == 4.0


ODD_THINGS = """
folder, key = sys.argv[1:3]
if os.path.lexists(folder + "/latest"):
    print("continues with", open(folder + "/latest").read(), os.path.realpath(folder + "/latest"))
else:
    os.symlink(folder + "/state", folder + "/latest")
    os.symlink("circle", folder + "/circle")
    os.symlink("nothing", folder + "/gone")
    os.symlink(key, folder + "/key")
    with open(folder + "/state", "w") as file:
        file.write("1")
os.mkfifo(folder + "/pipe")
held = os.open(folder + "/pipe", os.O_RDWR)
removed = open(folder + "/removed", "w")
os.unlink(folder + "/removed")
for epoch in range(1, 4):
    print(json.dumps({"resource": epoch, "a": 1}))
    time.sleep(0.05)
"""


def test_odd_things_in_the_folder_are_left_out_or_kept_and_keep_nothing_waiting(
    start, python, tmp_path
):
    key = tmp_path / "key"
    key.write_text("private")
    key.chmod(0o600)
    command = f"{python(ODD_THINGS)} {{folder}} {key}"
    first = start(command)
    items = iter(first)
    next(item for item in items if item is not None)
    paused = Path(str(first.save()))
    assert "open for writing" not in log_of(tmp_path)
    reports_of(first)
    final = (tmp_path / "trial" / "last").resolve()
    assert final != paused
    for saved in (paused, final):
        left = (saved / "folder").iterdir()
        links = {each.name: os.fspath(each.readlink()) for each in left if each.is_symlink()}
        expected = {"latest": "state", "circle": "circle", "gone": "nothing", "key": str(key)}
        assert links == expected
        assert not os.path.lexists(saved / "folder" / "pipe")
        verify(saved, whole=True)
    assert key.stat().st_mode & 0o777 == 0o600

    reports_of(start(command, resume_from=paused, attempt=2))
    assert "continues with 1" in log_of(tmp_path, 2)
    assert "/attempt-2-" in log_of(tmp_path, 2).partition("continues with 1")[2].splitlines()[0]


def test_a_program_that_removes_its_folder_has_no_checkpoint(start, tmp_path):
    echo = echoing('{"resource": 3, "a": 1}')
    run = start(shell(f"rm -r {{folder}}; {echo}"))
    assert reports_of(run)[-1].resource == 3.0
    assert Checkpoints(tmp_path / "trial").last is None


def test_the_best_checkpoint_by_the_objective_is_named(start, python, gate):
    program = python(
        GATED + "for n, a in enumerate((0.1, 0.9, 0.3), 1):\n"
        " wait_before(n)\n"
        " open(os.path.join(sys.argv[1], 'state'), 'w').write(str(n))\n"
        " print(json.dumps({'resource': n, 'a': a}))\n"
    )
    gate.open_to(1)
    run = start(program + " {folder}", goal=Goal("a", maximize=True))
    saved = []
    for item in run:
        if item is not None:
            saved.append(run.save())
            gate.open_to(len(saved) + 1)
    assert run.best == saved[1]
    assert (Path(str(run.best)) / "folder" / "state").read_text() == "2"
    assert [Path(str(path)).name for path in saved] == ["epoch-1", "epoch-2", "epoch-3"]


def test_the_task_is_sent_to_workers_as_its_part_of_the_study_file(tmp_path):
    task = tasks.load({"kind": "command", "run": "true"}, tmp_path)
    again = pickle.loads(pickle.dumps(task))
    assert again._command.base == tmp_path


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"reports": "../x"}, "task.reports"),
        ({"reports": "/x"}, "task.reports"),
        ({"resource": ""}, "task.resource"),
        ({"cwd": "no-such-folder"}, "task.cwd"),
        ({"runs": 1}, "task.runs"),
        ({"run": "train {"}, "task.run"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, options, where):
    with pytest.raises(TaskError) as caught:
        tasks.load({"kind": "command", "run": "true", **options}, tmp_path)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_what_a_program_has_saved_at_a_rung_was_reported(start, python, gate):
    computing = "    for _ in range(100_000): pass\n    print(json"
    program = python(COUNTING.replace("    print(json", computing)) + " {folder} {budget}"
    gate.open_to(1)
    run = start(program, total=9.0)
    items = iter(run)
    for epoch in range(1, 6):
        next(item for item in items if item is not None)
        gate.wait_for(epoch + 1)
        gate.open_to(epoch + 1)  # just before it is suspended
        saved = Path(str(run.save()))
        progress = json.loads((saved / "progress.json").read_text())
        reported = [progress["reached"], *(resource for resource, _ in progress["pending"])]
        assert int((saved / "folder" / "state").read_text()) == reported[-1]


@pytest.mark.parametrize(("fold", "told"), [(Fold(0, 3), "--fold 0 --of=3"), (None, "")])
def test_a_program_is_told_its_fold_and_has_no_such_argument_without(tmp_path, fold, told):
    line = 'sh -c \'echo "$@" > told; echo "{{\\"resource\\": 1, \\"a\\": 1}}"\' sh'
    task = tasks.load(
        {"kind": "command", "run": f"{line} --fold {{fold}} --of={{folds}}"}, tmp_path
    )
    budget = Budget(Unit.EPOCHS, 1.0, (1.0,))
    run = task.start(Setup({}, 1, budget, tmp_path / "trial", fold=fold), None)
    assert [report.metrics for report in reports_of(run)] == [{"a": 1}]
    assert run.close()
    assert (tmp_path / "told").read_text().strip() == told
