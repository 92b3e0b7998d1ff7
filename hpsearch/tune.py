"""Ray Tune's interface to studies: `from hpsearch import tune` in place of `from ray import tune`.

`hpsearch.plugins.ray_tune` runs studies, and `hpsearch.plugins.ray_tune` trains in workers, which
needs no Ray. Search spaces and configs are Ray Tune's own objects, imported when they are first
used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from hpsearch.plugins.ray_tune import session
from hpsearch.plugins.ray_tune.adapting import with_parameters, with_resources
from hpsearch.plugins.ray_tune.session import (
    Checkpoint,
    TuneContext,
    get_checkpoint,
    get_context,
    report,
)
from hpsearch.plugins.ray_tune.trainable import Trainable

if TYPE_CHECKING:
    from hpsearch.plugins.ray_tune.runs import ExperimentAnalysis, run
    from hpsearch.plugins.ray_tune.tuner import Result, ResultGrid, Tuner

__all__ = [
    "Checkpoint",
    "ExperimentAnalysis",
    "Result",
    "ResultGrid",
    "Trainable",
    "TuneContext",
    "Tuner",
    "get_checkpoint",
    "get_context",
    "report",
    "run",
    "session",
    "with_parameters",
    "with_resources",
]

_OURS = {
    "Tuner": "tuner", "Result": "tuner", "ResultGrid": "tuner",
    "run": "runs", "ExperimentAnalysis": "runs",
}  # fmt: skip
"""Names of this module, with the modules that define them."""
_SPACES = (
    "uniform", "quniform", "loguniform", "qloguniform", "randn", "qrandn", "randint", "qrandint",
    "lograndint", "qlograndint", "choice", "sample_from", "grid_search",
)  # fmt: skip
_CONFIGS = (
    "TuneConfig", "RunConfig", "CheckpointConfig", "FailureConfig", "SyncConfig", "ResumeConfig",
    "PlacementGroupFactory", "Callback", "Stopper", "CLIReporter", "JupyterNotebookReporter",
    "ProgressReporter", "TuneError", "create_scheduler", "create_searcher",
)  # fmt: skip
_MODULES = ("schedulers", "search", "stopper")


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name in _OURS:
        return getattr(importlib.import_module(f"hpsearch.plugins.ray_tune.{_OURS[name]}"), name)
    if name in _SPACES or name in _CONFIGS:
        return getattr(importlib.import_module("ray.tune"), name)
    if name in _MODULES:
        return importlib.import_module(f"ray.tune.{name}")
    what = f"hpsearch.tune has no {name}; docs/ray-tune.md says what is carried over"
    raise AttributeError(f"{what}: start with Tuner")
