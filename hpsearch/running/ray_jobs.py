"""Studies as jobs of a Ray cluster, by Ray's own job server. The head unpacks the folder of a study
file, runs the driver and keeps its log, also when the one who submitted it is gone."""

import asyncio
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray.exceptions import RayError
from ray.job_submission import JobSubmissionClient

from hpsearch.errors import StudyHeld, Unreachable, Unusable, UserError
from trials.foreign import line_of, text_of

MOST_BYTES = 100 << 20  # of the files of a study; Ray keeps them in the memory of the head
STUDY = "hpsearch_study"  # in the metadata of a job: the name of its study
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
FOLDER = Path("study")
"""The folder of a study file, below the one that Ray puts first on the path of Python."""
OUTPUTS = ("hpsearch-studies", "__pycache__")
"""Folders beside a study file that its files are not in, as those with a dot and environments."""


@dataclass(frozen=True)
class RayJob:
    """A study to submit."""

    study: str
    file: Path  # its study file
    command: str  # runs in the folder of the study file
    environment: Mapping[str, str]  # of the driver alone


class JobServer:
    """The job server of a cluster, at the URL of its dashboard. Raises UserError if this is not a
    URL, Unreachable if no job server answers."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            what = f"--address {url[:80]}: this is not the address of a job server"
            raise UserError(what, "give that of the cluster's dashboard: http://HEAD:8265")
        logging.disable(logging.INFO)  # Ray tells of each step
        os.environ["RAY_API_SERVER_ADDRESS"] = url  # one that is set would go before the argument
        self.url = url
        self._client = self._asked(JobSubmissionClient, url)

    def submit(self, job: RayJob) -> str:
        """Submit a study, and return the id of its job. Raises StudyHeld if a job of it waits or
        runs, UserError if its folder is too large or Ray does not accept the job."""
        jobs = self._asked(self._client.list_jobs)
        own = [each for each in jobs if (each.metadata or {}).get(STUDY) == job.study]
        for each in own:
            if each.status not in ENDED:
                what = f"study {job.study} is job {each.submission_id} already"
                raise StudyHeld(what, self.hint(job.study, each.submission_id))
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "study.zip"
            _pack(job.file.parent, package)
            # Two that are submitted at once get the same id, which Ray takes once.
            name = f"hpsearch-{job.study}-{len(own) + 1}"
            self._asked(
                self._client.submit_job,
                entrypoint=f"cd {FOLDER} && {job.command}",
                submission_id=name,
                runtime_env={"working_dir": str(package), "env_vars": dict(job.environment)},
                metadata={STUDY: job.study},
            )
            return name

    def follow(self, job: str, say: Callable[[str], None]) -> int:
        """Repeat what a job says until it has ended, and return the exit code of its driver. Raises
        Unreachable if the connection is lost."""
        self._asked(asyncio.run, self._repeat(job, say))
        details = self._asked(self._client.get_job_info, job)
        if details.status == "SUCCEEDED":
            return 0
        return details.driver_exit_code or 1

    async def _repeat(self, job: str, say: Callable[[str], None]) -> None:
        async for text in self._client.tail_job_logs(job):
            say(text.removesuffix("\n"))

    def hint(self, study: str, job: str) -> str:
        """How a study that runs as a job is followed and stopped."""
        follow = f"ray job logs {job} --follow --address {self.url}"
        return f"follow it: {follow} - save and stop it: hpsearch stop {study}"

    def _asked(self, call: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return call(*arguments, **named)
        except (OSError, RuntimeError, RayError) as error:
            where = f"the job server at {self.url} does not do it: {line_of(error)}"
            hint = "its head needs ray[default]; where it asks for a token, set RAY_AUTH_MODE=token"
            is_refused = "status code 4" in text_of(error)
            raise (Unusable if is_refused else Unreachable)(where, hint) from error


def _pack(folder: Path, package: Path) -> None:
    size = 0
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as packed:
        for path in _files(folder):
            size += path.stat().st_size
            if size > MOST_BYTES:
                what = f"the folder {folder} has more than {MOST_BYTES >> 20} MiB of files"
                hint = "keep in it the study file, its modules and small data; put other data where"
                raise UserError(what, f"{hint} all nodes find it, and name it by its whole path")
            packed.write(path, FOLDER / path.relative_to(folder))


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "hpsearch.db")) or path.suffix == ".slurm":
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and path.name not in OUTPUTS and not (path / "pyvenv.cfg").exists():
            yield from _files(path)
