"""The files of a study, and the calls of sbatch, by a program that writes down its arguments."""

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hpsearch.errors import StudyHeld, Unreachable, UserError
from hpsearch.plugins.slurm.queue import command_of, jobs_in, mark_of
from hpsearch.plugins.slurm.submission import StudyJob, calls_of
from hpsearch.plugins.slurm.submission import submit as submit_calls

SBATCH = """
echo "$*" >> {folder}/calls
number=$(wc -l < {folder}/calls)
if [ "$number" = "$FAILS_AT" ]; then echo "sbatch: error: no such thing" >&2; exit 1; fi
echo "10$number;cluster"
"""
SINFO = """
echo 'all*|3|8|16000|1-00:00:00|1-infinite'
echo 'all*|1|16|32000|1-00:00:00|1-infinite'
echo 'long|3|8|16000|infinite|1-1'
"""
SCONTROL = """
echo "SelectTypeParameters    = ${SELECTS:-CR_CORE}"
"""
SQUEUE = """
if [ -z "$QUEUE" ]; then echo "squeue: error: no answer" >&2; exit 1; fi
echo "$QUEUE"
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyJob:
    """A study in a folder whose name needs quotes, and programs that stand in for SLURM's."""
    programs = {
        "sbatch": SBATCH.format(folder=tmp_path),
        "scancel": f'echo "scancel $*" >> {tmp_path}/calls',
        "squeue": SQUEUE,
        "sinfo": SINFO,
        "scontrol": SCONTROL,
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("QUEUE", "no job of a study")
    studies = tmp_path / "my $studies"
    studies.mkdir()
    return StudyJob("s", studies / "study.yaml", "sqlite:////a b.db", 20.0, studies)


def submit(job: StudyJob, options: list[str], for_driver: list[str]) -> list[str]:
    return submit_calls(calls_of(job, options, for_driver))


def mark(job: StudyJob) -> str:
    return f"--comment={mark_of(job.storage, job.study)}"


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_a_study_is_one_job_and_all_options_are_those_of_sbatch(
    job: StudyJob, tmp_path: Path
) -> None:
    assert submit(job, ["--nodes", "1", "-p", "long"], []) == ["101"]
    assert calls(tmp_path) == [f"--parsable --nodes 1 -p long {mark(job)} {job.script}"]


def test_an_array_is_nodes_and_the_job_of_the_driver_takes_less(
    job: StudyJob, tmp_path: Path
) -> None:
    options = ["--array", "1-8%2", "-pall", "--gres=gpu:1", "-c", "4", "--time", "1:00"]
    assert submit(job, options, ["--time=9:00"]) == ["101", "102"]
    driver, nodes = calls(tmp_path)
    core = "--ntasks=1 --cpus-per-task=1"
    assert (
        driver == f"--parsable -pall --time 1:00 {core} --time=9:00 {mark(job)} {job.script} head"
    )
    together = f"--job-name=hpsearch-s-101 --dependency=after:101 {mark(job)}/nodes-of-101"
    assert nodes == f"--parsable {' '.join(options)} {together} {job.script} node 101"


def test_several_arrays_have_what_stands_before_the_first_and_their_own(
    job: StudyJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SELECTS", "CR_CORE_MEMORY")
    submitted = submit(
        job, ["-t", "9", "--arr", "1-4", "-G", "a100", "--array=1-2", "-p", "long"], []
    )
    assert submitted == ["101", "102", "103"]
    driver, first, second = calls(tmp_path)
    assert driver.startswith("--parsable -t 9 --ntasks=1 --cpus-per-task=1 --mem=4G --comment")
    assert first.startswith("--parsable -t 9 --arr 1-4 -G a100 --job-name=hpsearch-s-101 ")
    assert second.startswith("--parsable -t 9 --array=1-2 -p long --job-name=hpsearch-s-101 ")


def test_an_array_of_the_environment_is_one_and_a_comment_of_the_users_stays(
    job: StudyJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ARRAY_INX", "1-3")
    submit(job, ["--comment", "paid by us"], [])
    driver, nodes = calls(tmp_path)
    assert f"--comment=paid by us {mark_of(job.storage, 's')} " in driver
    assert "--array=1-3" in nodes


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--nodes 5", "--nodes 5 is more than partition all has: 4"),
        ("-N2 -plong", "--nodes 2 is more than a job may have in partition long: 1"),
        ("-t 1-1", "--time 1-1 is more than a job may have in partition all: 1-00:00:00"),
        ("--time 1441", "--time 1441 is more than a job may have in partition all: 1-00:00:00"),
        ("-c17", "--cpus-per-task 17 is more than a node of partition all has: 16"),
    ],
)
def test_what_slurm_would_never_start_is_refused_with_the_figure(
    job: StudyJob, options: str, says: str
) -> None:
    with pytest.raises(UserError) as refused:
        submit(job, options.split(), [])
    assert refused.value.message == says
    assert not job.folder.exists()


def test_what_one_of_several_partitions_allows_is_submitted(
    job: StudyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(job, ["-p", "all,long", "--nodes=4"], [])
    submit(job, ["-p", "long", "--time=9-0", "--array=0-15:4096"], [])
    monkeypatch.setenv("SBATCH_PARTITION", "long")
    submit(job, ["--time=9-0"], [])


def test_lines_of_a_prelude_are_run_first_and_its_options_give_way(
    job: StudyJob, tmp_path: Path
) -> None:
    prelude = tmp_path / "site's prelude.sh"
    prelude.write_text("#SBATCH --mem=8G -p all # ours\nfolder=elsewhere\nfalse || true\n")
    job = replace(job, preludes=[prelude], command="hpsearch submit it's.yaml")
    submit(job, ["--mem-per-cpu=2G"], [])
    assert calls(tmp_path)[-1].startswith("--parsable -p all --mem-per-cpu=2G --comment")
    assert command_of(str(job.file.parent), "s", job.storage) == job.command
    assert command_of(str(job.file.parent), "s", "sqlite:////other.db") is None
    before, _, _ = job.script.read_text().partition("# Without an argument")
    assert _run(f'{before}echo "$folder"').stdout.strip() == str(job.folder)
    fails = before.replace("false || true", "module load nothing")
    assert f"a line of {prelude} failed on n1: module load nothing" in _run(fails).stderr


def _run(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "SLURMD_NODENAME": "n1"}
    return subprocess.run(
        ["bash", "-c", script, "job.sh", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [("if true; then\n", "is not for bash"), ("#SBATCH '\n", "cannot be read")],
)
def test_a_prelude_that_bash_cannot_read_is_refused(
    job: StudyJob, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "prelude.sh").write_text(text)
    with pytest.raises(UserError, match=says):
        calls_of(replace(job, preludes=[tmp_path / "prelude.sh"]), [])


def test_a_driver_whose_nodes_are_refused_is_cancelled(
    job: StudyJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS_AT", "2")
    with pytest.raises(UserError, match="did not accept the job: sbatch: error: no such thing"):
        submit(job, ["--array=1-9"], [])
    assert calls(tmp_path)[-1] == "scancel 101"


def test_options_for_a_driver_that_has_no_job_of_its_own_are_refused(job: StudyJob) -> None:
    with pytest.raises(UserError, match="which only --array has"):
        submit(job, ["--nodes=2"], ["--time=9:00"])


def test_the_script_is_one_that_bash_reads_and_nobody_else(job: StudyJob) -> None:
    submit(job, [], [])
    subprocess.run(["bash", "-n", str(job.script)], check=True)
    settings = job.script.read_text().split("# Without an argument")[0]
    shown = subprocess.run(
        ["bash", "-c", f'{settings}echo "$folder|$HPSEARCH_STORAGE|$save_s|$PATH"'],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    folder, storage, save_s, path = shown.split("|")
    assert (folder, storage, save_s) == (str(job.folder), job.storage, "20")
    assert path.endswith(os.environ["PATH"])
    assert "#SBATCH --signal=B:USR1@50\n" in job.script.read_text()
    for file in job.folder.iterdir():
        assert not stat.S_IMODE(file.stat().st_mode) & 0o077, file


def test_quiet_is_left_out_as_sbatch_prints_the_id(job: StudyJob, tmp_path: Path) -> None:
    submit(job, ["-HQ"], [])
    assert calls(tmp_path)[-1].startswith("--parsable -H --comment")


def test_no_password_is_in_the_script_or_in_a_call(job: StudyJob, tmp_path: Path) -> None:
    job = replace(job, storage="postgresql://me:s3cret@db/x")
    submit(job, [], [])
    assert "s3cret" not in job.script.read_text() + (tmp_path / "calls").read_text()
    before, _, _ = job.script.read_text().partition("# Without an argument")
    assert _run(f'{before}echo "$HPSEARCH_STORAGE"').stdout.strip() == job.storage


@pytest.mark.parametrize(
    "lines",
    [
        "set -euf -o pipefail\nexport NOTHING=1",
        "unset PATH",
        "set -- other arguments; IFS=/; cd /",
        "\ufeffset -e\r\nif true; then\r\n  export NOTHING=1\r\nfi\r\n",
        "export NOTHING=1 \\",
        '[ "$*" = "" ] # what it sources has no arguments',
    ],
)
def test_a_prelude_changes_nothing_that_the_script_relies_on(
    job: StudyJob, tmp_path: Path, lines: str
) -> None:
    (tmp_path / "prelude.sh").write_text(lines, newline="")
    submit(replace(job, preludes=[tmp_path / "prelude.sh"]), [], [])
    before, _, _ = job.script.read_text().partition("# Without an argument")
    ran = _run(f'{before}false; true $UNSET; printf "%s|" "$PWD" "$*" $(echo a b)', "node", "7")
    assert (ran.stdout, ran.stderr) == (f"{job.starts_in}|node 7|a|b|", "")


def test_of_two_submissions_at_once_the_second_is_cancelled(job: StudyJob, tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    (tmp_path / "bin" / "squeue").write_text(f'#!/bin/sh\ncat "{queue}"\n')
    queue.write_text("")
    first = f"99|PENDING|None|{job.mark}\n101|PENDING|None|{job.mark}\n"
    with (tmp_path / "bin" / "sbatch").open("a") as sbatch:
        sbatch.write(f"echo '{first}' > '{queue}'\n")
    with pytest.raises(StudyHeld, match="study s is job 99 already"):
        submit(job, ["--array=1-2"], [])
    assert calls(tmp_path)[1:] == ["scancel 101"]


def test_each_submission_has_another_token(job: StudyJob) -> None:
    tokens = set()
    for _ in range(2):
        submit(job, [], [])
        tokens.add((job.folder / "token").read_text())
    assert len(tokens) == 2


def test_a_job_that_only_ends_or_is_of_another_database_is_not_in_the_queue(
    job: StudyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = mark_of(job.storage, "s"), mark_of("sqlite:////other.db", "s")
    ends = f"7|COMPLETING|None|{own}"
    monkeypatch.setenv("QUEUE", f"{ends}\n9|PENDING|None|{other}\n10|PENDING|None|(null)")
    assert jobs_in(job.storage, "s") == []
    nodes = f"9|PENDING|Dependency|{own}/nodes-of-8\n9|RUNNING|None|{own}/nodes-of-8"
    monkeypatch.setenv("QUEUE", f"{ends}\n{nodes}\n8|PENDING|QOSMaxJobsPerUserLimit|a | b {own}")
    found = jobs_in(job.storage, "s")
    assert [(each.job, each.state, each.driver) for each in found] == [
        ("8", "PENDING", None),
        ("9", "RUNNING", "8"),
    ]
    assert found[0].in_words == (
        "waits in the queue as job 8 (QOSMaxJobsPerUserLimit): your limit in this QOS is reached"
    )
    monkeypatch.setenv("QUEUE", "")
    with pytest.raises(Unreachable, match="SLURM does not answer: squeue: error: no answer"):
        jobs_in(job.storage, "s")


def test_a_study_is_known_by_its_database_however_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert mark_of(f"sqlite:///{tmp_path}/a.db", "s") == mark_of(
        f"sqlite:///{tmp_path}/link/a.db", "s"
    )
    assert mark_of("postgresql://me:secret@db/x", "s") == mark_of("postgres://db:5432/x", "s")
    assert mark_of("postgresql://db/x", "s") != mark_of("postgresql://db/y", "s")
    assert mark_of("postgresql://db/x", "s") != mark_of("postgresql://db/x", "t")


def test_a_machine_without_slurm_is_told_from_a_login_node(
    job: StudyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="there is no squeue on the PATH"):
        jobs_in(job.storage, "s")
