"""Ray Tune's interface to studies: `from hpsearch import tune` in place of `from ray import tune`.

- `tuner`: `Tuner`, which runs a study
- `plan`: what a Tuner is given, as a study file
- `space`: Ray Tune's search spaces as ours
- `results`: what `Tuner.fit` returns

What trains in a worker needs no Ray: see `hpsearch.adapters.ray_tune`. Search spaces and configs
are Ray Tune's own objects, imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from hpsearch.adapters.ray_tune.checkpoint import Checkpoint
from hpsearch.adapters.ray_tune.session import TuneContext, get_checkpoint, get_context, report
from hpsearch.adapters.ray_tune.trainable import Trainable
from hpsearch.adapters.ray_tune.wrapped import with_parameters, with_resources

__all__ = [
    "Checkpoint",
    "Trainable",
    "TuneContext",
    "get_checkpoint",
    "get_context",
    "report",
    "with_parameters",
    "with_resources",
]
