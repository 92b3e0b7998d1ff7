"""SLURM: studies as jobs, with one script, which starts a Ray cluster and the driver.

* `command`: `hpsearch submit`; `submitting`: what it does.
* `submission`: the script and the calls of sbatch. `job.sh` is the part that all studies share.
* `options`: those of sbatch, and `limits`: what SLURM would never start.
* `queue`: the jobs of studies that wait or run, and `programs`: calls of SLURM.
"""

from hpsearch.domain.plugins.offers import LauncherPlugin

offers = [
    LauncherPlugin(
        "submit",
        "Search",
        "hpsearch.plugins.slurm.command:submit",
        settings={
            "ignore_unknown_options": True,
            "allow_extra_args": True,
            "help_option_names": ["--help"],  # -pshort has an h
        },
        epilog="All other options are sbatch's: --nodes 4 for one job, --array 1-8 for a job a "
        "node, and again for nodes of another kind.",
        jobs="hpsearch.plugins.slurm.queue:seen_in",
        cancel="hpsearch.plugins.slurm.queue:cancel",
        again="hpsearch.plugins.slurm.queue:command_of",
        inside="srun",
    )
]
