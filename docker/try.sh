#!/bin/sh
# Try an installation as the image's user does: every program, and a small study on a local Ray.
#
#   docker/try.sh PREFIX CHECKPOINTS
#
# Leaves the study's files in this folder.
set -eu

prefix=$1
checkpoints=$2
export PATH="$prefix/bin:$PATH" OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0

python -c '
import pathlib, sys, hpsearch, trials
for package in (hpsearch, trials):
    place = pathlib.Path(package.__file__)
    if not place.is_relative_to(sys.prefix):
        sys.exit(f"{package.__name__} was imported from {place}, not from {sys.prefix}")
'
hpsearch --help >/dev/null
ray --version
if [ "$(id -u)" != 0 ] && touch "$prefix/try" 2>/dev/null; then
    echo "$(id -un) may write to $prefix" >&2
    exit 1
fi

# Creating the database fails if the package lacks its migrations, which are easily left out.
cat >tried.py <<'END'
def train(params, trial):
    trial.report(1, {"loss": params["x"]})
END
cat >study.yaml <<'END'
study: try
task: {kind: "tried:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 1}}
resources: {workers: 1, cpu: 1, gpu: 0}
END
hpsearch run study.yaml --checkpoints "$checkpoints" --quiet
hpsearch db check
hpsearch best try --format json
