"""What `hpsearch submit` does: a study as jobs of SLURM."""

import os
import shlex
from contextlib import closing
from pathlib import Path

from hpsearch.cli.output import note
from hpsearch.cli.studies.run import refuse_asked
from hpsearch.domain.records import StudyState
from hpsearch.errors import UserError
from hpsearch.plugins.slurm.submission import StudyJob, calls_of, script_of, submit
from hpsearch.running import loading
from hpsearch.running.study_run.ownership import refuse_if_held
from hpsearch.running.study_run.workers import refuse_contradictions
from hpsearch.running.tracking.senders import refuse_missing
from hpsearch.store.connecting.hints import DEFAULT_STORAGE
from hpsearch.store.connecting.url import display, file_of, parse_url, refuse_in_memory
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load

KILLED_AFTER = 2  # a worker that has not saved after so many times `resources.stop_grace` is killed


def submit_to_slurm(
    path: Path, options: list[str], for_driver: str, prelude: Path | None, url: str, dry_run: bool
) -> None:
    """Submit a study to SLURM, and print the id of the job with its driver; or with `dry_run` its
    script and the calls of sbatch. `for_driver` are more options for the job of a driver alone."""
    spec, file = _checked(path, url)
    if file is None or file.exists():
        _refuse_held_or_ended(url, spec)
    preludes = [*_of_the_site(), *([prelude] if prelude else [])]
    words = [str(path), *options, *(["--driver", for_driver] if for_driver else [])]
    words += ["--prelude", str(prelude.absolute())] if prelude else []
    if url not in (DEFAULT_STORAGE, os.environ.get("HPSEARCH_STORAGE")):
        words += ["--storage", display(parse_url(url))]
    study_job = StudyJob(
        spec.study,
        path.resolve(),
        url if file is None else f"sqlite:///{file}",
        KILLED_AFTER * spec.resources.stop_grace_s,
        Path.cwd(),
        f"cd {shlex.quote(str(Path.cwd()))} && hpsearch submit {shlex.join(words)}",
        [each.absolute() for each in preludes],
    )
    try:
        of_driver = shlex.split(for_driver)
    except ValueError as error:
        raise UserError(f"--driver cannot be read: {error}", "close each quote") from None
    calls = calls_of(study_job, options, of_driver)
    if dry_run:
        lines = [script_of(study_job), shlex.join(["sbatch", *calls.of_driver()])]
        lines += [shlex.join(["sbatch", *words]) for words in calls.of_nodes("DRIVER")]
        print("\n".join(lines))  # noqa: T201 - this is the result
        return
    driver, *nodes = submit(calls)
    note(f"study {spec.study} is job {driver}, by {study_job.script}")
    if nodes:
        arrays = " and ".join(nodes)
        note(f"its nodes are the tasks of job {arrays}; they may start later, and again")
    note(f"read what it says: tail -F {shlex.quote(str(study_job.log_of(driver)))}")
    note(f"see its progress:  hpsearch status {spec.study}")
    note(f"save and stop it:  hpsearch stop {spec.study}")
    print(driver)  # noqa: T201 - this is the result


def _of_the_site() -> list[Path]:
    """The prelude that is run for every study: that of the environment, or the user's own."""
    named = os.environ.get("HPSEARCH_PRELUDE")
    if named is not None:
        return [Path(named)] if named else []
    own = Path("~/.config/hpsearch/prelude.sh").expanduser()
    return [own] if own.exists() else []


def _checked(path: Path, storage: str) -> tuple[StudySpec, Path | None]:
    """The study, which something can train, and the file of its database; None of a server."""
    if str(path).startswith("-"):
        example = "hpsearch submit study.yaml --partition gpu --time 4:00:00"
        raise UserError("the study file comes first", f"for example: {example}")
    spec = load(path, inspect=loading.inspect)
    refuse_contradictions(spec, path.name)
    refuse_asked(spec)
    refuse_missing(spec.track)
    url = parse_url(storage)
    refuse_in_memory(url)
    return spec, file_of(url)


def _refuse_held_or_ended(storage: str, spec: StudySpec) -> None:
    with closing(Store.open(storage)) as store:
        if spec.study not in store.study_names():
            return
        refuse_if_held(store, spec.study)
        record = store.find_study(spec.study)
    if record.state is StudyState.FINISHED:
        raise UserError(
            f"study {spec.study} has already ended: {record.reason}",
            f"to continue it, raise a limit in a job: srun hpsearch resume {spec.study} "
            "--trials N - or give the new study another name",
        )
    note(f"study {spec.study} is continued as it was created")
