"""Ray Tune: `from hpsearch import tune` runs its searches as studies, and its trainables as trials.

What trains in workers needs no Ray.

- `tuner`: `tune.Tuner` and its results; `runs`: `tune.run` and its analysis
- `plan`: the study file of a search; `space`: its search space
- `adapting`: turns a trainable, with its parameters and resources, into a training function
- `session`: the trial that runs, as `tune.report` sees it, its checkpoints and its folder
- `trainable`: the base of class trainables, and how one is driven
"""

from hpsearch.domain.plugins.offers import LibraryPlugin

offers = [
    LibraryPlugin(
        "ray_tune",
        adapt="hpsearch.plugins.ray_tune.adapting:adapt",
        files="write to a relative path: each trial's working directory is its own",
    )
]
