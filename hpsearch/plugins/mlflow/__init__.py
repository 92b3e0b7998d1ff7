"""MLflow: a run for the study, and nested in it one for each trial.

- `tracker`: sends the runs
- `options`: its keys in a study file
"""

from hpsearch.domain.plugins.offers import TrackerPlugin

offers = [
    TrackerPlugin(
        "mlflow",
        options="hpsearch.plugins.mlflow.options:MlflowOptions",
        tracker="hpsearch.plugins.mlflow.tracker:MlflowTracker",
        packages=("mlflow-skinny", "mlflow"),
    )
]
