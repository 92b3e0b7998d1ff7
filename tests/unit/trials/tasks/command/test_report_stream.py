"""Programs that know nothing of hpsearch: reports by patterns, and in tables that they write."""

from typing import Any

import pytest

from support.running.command_runs import first_of, log_of, reports_of, shell
from trials.contract import Goal, ProgramFailed
from trials.descriptions import report_pattern
from trials.tasks.command.report_stream import CsvRows


def seen(run: Any) -> list[tuple[float, dict[str, float]]]:
    return [(report.resource, dict(report.metrics)) for report in reports_of(run)]


def test_a_pattern_finds_reports_in_what_a_program_prints_and_they_stay_in_the_log(start, tmp_path):
    (tmp_path / "train.sh").write_text(
        "for n in 1 2 3; do echo \"epoch $n/3 [12:0$n] val_acc 0.$n\"; echo 'epoch done'; done\n"
    )
    run = start("sh train.sh", report=r"epoch {resource}/\d{1} .* val_acc {accuracy}")
    assert seen(run) == [(n, {"accuracy": n / 10}) for n in (1, 2, 3)]
    assert "epoch 2/3 [12:02] val_acc 0.2\nepoch done\n" in log_of(tmp_path)


@pytest.mark.parametrize(("lines", "limit_s"), [(1, 2.0), (11, 0.1)])
def test_lines_that_take_too_long_to_search_are_left_out_and_in_the_end_the_pattern_is_refused(
    start, python, tmp_path, monkeypatch, lines, limit_s
):
    monkeypatch.setattr(report_pattern, "LIMIT_S", limit_s)
    program = python(
        f"for _ in range({lines}):\n    print('x' * 5000 + '!')\nprint('xxepoch 3 a=2')\n"
    )
    run = start(program, report="(?:x+x+)+epoch {resource} a={a}")
    if lines == 1:
        assert seen(run) == [(3, {"a": 2.0})]
    else:
        with pytest.raises(
            ProgramFailed, match=r"was not found within .* and so in 10 lines: make"
        ):
            seen(run)
    assert "which is left out" in log_of(tmp_path)


def test_progress_bars_and_colours_are_not_in_the_way_and_logging_to_standard_error_is_read(
    start, python
):
    program = python(
        "import logging\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "for n in range(3):\n"
        "    print(f'\\r 50% epoch {n} acc=0.0\\r100%', end='', file=sys.stderr)\n"
        "    logging.info('\\x1b[32mepoch %d\\x1b[0m acc=%.1f%%', n, 10 * n)\n"
    )
    run = start(program, report="epoch {resource+1} acc={accuracy}")
    assert seen(run) == [(n + 1, {"accuracy": 10.0 * n}) for n in range(3)]


def test_of_a_bar_that_is_drawn_again_in_one_line_each_part_is_reported_once_it_is_over(
    start, python
):
    program = python(
        "import time\n"
        "for n in range(3):\n"
        "    for loss in (9, n + 5):\n"
        "        print(f'\\r 9%|#  | {n}/3 [00:02<00:01, loss={loss}]', end='', flush=True)\n"
        "    if n == 1: time.sleep(3600)\n"
    )
    run = start(program, report=r"\| {resource+1}/.*loss={loss}")
    report = first_of(run)
    assert (report.resource, report.metrics) == (1, {"loss": 5})


def test_numbers_with_a_decimal_comma_are_read_whole_and_doubt_is_refused_with_its_line(
    start, python
):
    program = python("for n in (1, 2, 3): print(f'epoch {n} loss {n},50')\n")
    report = "epoch {resource} loss {loss}"
    assert seen(start(program, report=report)) == [(n, {"loss": n + 0.5}) for n in (1, 2, 3)]
    with pytest.raises(ProgramFailed, match=r"is the comma a decimal point.*in the line epoch 1"):
        seen(start("echo epoch 1 loss 1,234", report=report))


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (b"epoch;loss;acc\n1;0,83;81,5\n2;1,234;9\n", [(0.83, 81.5), (1.234, 9.0)]),
        (b"epoch,loss,acc\n1,1'234.5,3\n2,0.5s,4\n", [(1234.5, 3.0), None]),
        (b"epoch\tloss\tacc\n1\t1 234,5\t81%\n2\t3/10\t82%\n", [(1234.5, 81.0), (0.3, 82.0)]),
        (b'epoch,loss,acc\n1,"1,234",3\n', [None]),
    ],
)
def test_tables_of_other_countries_and_with_units_are_read_whole_or_refused(table, values):
    found = CsvRows("epoch", "loss").reports_in(table, ended=True)
    for value in values:
        if value is None:
            with pytest.raises(ProgramFailed, match=r"the row .*loss is"):
                next(found)
        else:
            metrics = next(found).metrics
            assert (metrics["loss"], metrics["acc"]) == value


def test_a_report_is_collected_from_several_lines(start, python):
    program = python(
        "for n in (1, 2, 3):\n"
        "    print(f'== epoch {n} ==')\n"
        "    print(f'train loss {n}e-1')\n"
        "    if n != 2: print(f'val acc nan')\n"
    )
    patterns = ["== epoch {resource}", "train loss {loss}", "val acc {accuracy}"]
    reports = seen(start(program, report=patterns))
    assert [(at, each["loss"]) for at, each in reports] == [(1.0, 0.1), (3.0, 0.3)]


def test_a_resource_that_ends_a_report_is_not_mistaken_for_the_next_ones(start, python):
    program = python(
        "for n in (1, 2, 3):\n"
        "    print(f'loss {n}')\n"
        "    if n != 2: print(f'acc {n}')\n"
        "    print(f'epoch {n} done')\n"
    )
    patterns = ["loss {loss}", "acc {accuracy}", "epoch {resource} done"]
    assert [at for at, _ in seen(start(program, report=patterns))] == [1.0, 3.0]


def test_what_is_printed_again_is_not_reported_again(start, python):
    program = python("for n in (1, 1, 3, 2): print(f'epoch {n} acc 0.{n}')\n")
    run = start(program, report="epoch {resource} acc {accuracy}")
    assert seen(run) == [(1, {"accuracy": 0.1}), (3, {"accuracy": 0.3})]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("round {resource} acc {accuracy}", "no line of it matches the task's report"),
        ("epoch {resource} acc {accuracy}", "if it counts from 0, write resource\\+1"),
    ],
)
def test_a_pattern_that_reads_nothing_of_use_fails(start, report, said):
    with pytest.raises(ProgramFailed, match=said):
        reports_of(start("echo epoch 0 acc 0.5", report=report))


TABLE = """
rows = []
for n in range(3):
    rows.append(f'{n},{n}.5,\\n')
    with open(sys.argv[1] + '/log.csv', 'w') as file:
        file.write(' epoch,  val_loss, note\\n' + ''.join(rows))
"""


def test_a_table_that_is_written_anew_each_time_is_read(start, python):
    run = start(f"{python(TABLE)} {{folder}}", reports="log.csv", resource="epoch+1")
    reports = seen(run)
    assert reports[-1] == (3.0, {"val_loss": 2.5})
    assert [at for at, _ in reports] == sorted({at for at, _ in reports})


def test_cells_may_be_long_and_hold_line_ends_quotes_and_commas(start, python):
    program = python(
        "import csv\n"
        "notes = ['a\\nb, \"c\"', 'x' * 3_000_000, '\\r\\n\\n', '1_0']\n"
        "file = open(sys.argv[1] + '/m.csv', 'w', newline='')\n"
        "writer = csv.writer(file)\n"
        "writer.writerow(['a\\nnote', 'epoch', 'acc'])\n"
        "for n, note in enumerate(notes, start=1):\n"
        "    writer.writerow([note, n, n / 10])\n"
        "    file.flush()\n"
    )
    wanted = {"reports": "m.csv", "resource": "epoch", "goal": Goal("acc", True)}
    run = start(f"{program} {{folder}}", total=4.0, **wanted)
    assert seen(run) == [(n, {"acc": n / 10}) for n in (1, 2, 3, 4)]


def test_a_row_that_is_not_whole_yet_is_no_report():
    rows = b'epoch,acc,note\n1,0.5,"a\nb"\n2,0.25,"a\nb"\n3,1\n'
    written = []
    for size in range(len(rows) + 1):
        found = CsvRows("epoch", "acc").reports_in(rows[:size], ended=False)
        written.append([report.metrics["acc"] for report in found])
    assert written == sorted(written)
    assert [list(map(float, some)) for some in (written[0], written[-1])] == [[], [0.5, 0.25, 1]]
    assert {len(each) for each in written} == {0, 1, 2, 3}


def test_a_quote_that_is_never_closed_is_told_at_the_end(start, python):
    program = python(
        "with open(sys.argv[1] + '/m.csv', 'w') as file:\n"
        "    file.write('epoch,acc,note\\n1,0.5,\"a\\n3,0.5,\\n')\n"
    )
    run = start(f"{program} {{folder}}", reports="m.csv", resource="epoch")
    with pytest.raises(ProgramFailed, match="row 2 has a quote that is never closed: close it"):
        reports_of(run)


def test_rows_without_the_objective_are_not_reports(start, python):
    program = python(
        "with open(sys.argv[1] + '/m.csv', 'w') as file:\n"
        "    file.write('epoch,loss,acc\\n1,0.3,\\n1,,0.5\\n3,0.2,0.6\\n')\n"
    )
    run = start(f"{program} {{folder}}", reports="m.csv", resource="epoch", goal=Goal("acc", True))
    assert seen(run) == [(1.0, {"acc": 0.5}), (3.0, {"loss": 0.2, "acc": 0.6})]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("round,acc", "no column epoch; it has round, acc"),
        ("epoch,loss", "no column acc; it has epoch, loss"),
    ],
)
def test_a_table_without_a_needed_column_fails(start, header, said):
    command = f"echo {header} > {{folder}}/m.csv"
    run = start(shell(command), reports="m.csv", resource="epoch", goal=Goal("acc", True))
    with pytest.raises(ProgramFailed, match=said):
        reports_of(run)


CONTINUING = """
path = sys.argv[1] + '/log.csv'
rows = open(path).readlines() if os.path.exists(path) else ['epoch,acc\\n']
for n in range(len(rows), 4):
    while os.path.exists('stop') and n > 1: time.sleep(0.005)
    rows.append(f'{n},0.{n}\\n')
    with open(path + '.new', 'w') as file:
        file.write(''.join(rows))
    os.replace(path + '.new', path)
"""


APPENDING = CONTINUING.replace("path + '.new', 'w'", "path, 'a'").replace(
    "file.write(''.join(rows))\n    os.replace(path + '.new', path)",
    "file.write(''.join(rows[-1:] if n > 1 else rows))",
)


@pytest.mark.parametrize("text", [CONTINUING, APPENDING], ids=["written anew", "added to"])
def test_a_trial_that_continues_reports_only_new_rows_of_its_table(start, python, tmp_path, text):
    command = f"{python(text)} {{folder}}"
    (tmp_path / "stop").touch()
    first = start(command, reports="log.csv", resource="epoch")
    assert first_of(first).resource == 1.0
    saved = first.save()
    assert saved is not None
    (tmp_path / "stop").unlink()
    second = start(command, reports="log.csv", resource="epoch", resume_from=saved, attempt=2)
    assert [at for at, _ in seen(second)][-1] == 3.0
    assert not [each for each in second.findings() if each.name == "began_again"]


def test_a_line_of_json_may_have_the_results_of_all_samples(start, python):
    line = '{"resource": %d, "accuracy": 0.5, "samples": [true, 0]}'
    program = python(f"for n in (1, 2, 3): print({line!r} % n)\n")
    reports = reports_of(start(program))
    assert [dict(report.metrics) for report in reports] == [{"accuracy": 0.5}] * 3
    assert [report.samples for report in reports] == [[1.0, 0.0]] * 3
    wrong = python('print(\'{"resource": 1, "accuracy": 1, "samples": ["a"]}\')\n')
    with pytest.raises(ProgramFailed, match="samples"):
        reports_of(start(wrong))
