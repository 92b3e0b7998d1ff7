"""The keys of `track: {mlflow: ...}` in a study file."""

import re
from collections.abc import Iterator

from hpsearch.study_file.types import Text
from hpsearch.study_file.validation import Mistake, Model

_PASSWORD = re.compile(
    r"://[^/@:]*:(?!\d+([/?]|$))[^@]+@|[?&]\w*(passw(or)?d|secret|token|api_?key)=", re.IGNORECASE
)
"""In a URL: before its host, or among its options. A number after a colon is a port."""


class MlflowOptions(Model):
    """MLflow: a run for the study, and nested in it one for each trial."""

    uri: Text | None = None
    """The tracking server or database; without it as MLFLOW_TRACKING_URI says."""
    experiment: Text | None = None
    """The experiment; without it the study's name."""

    def mistakes(self) -> Iterator[Mistake]:
        """A password: the study file is kept in the database."""
        if self.uri is not None and _PASSWORD.search(self.uri):
            what = "has a password in it, and study files are kept in the database"
            yield "uri", f"{what}; use MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
