"""Studies as jobs of SLURM: one script, which starts a Ray cluster and the driver.

* `submission`: the script and the calls of sbatch. `job.sh` is the part that all studies share.
* `options`: those of sbatch, and `limits`: what SLURM would never start.
* `queue`: the jobs of studies that wait or run, and `programs`: calls of SLURM.
"""
