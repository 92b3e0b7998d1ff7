"""Studies as jobs of SLURM: one script, which starts a Ray cluster and the driver of a study.

- `script`: the text of the script, of which `job.sh` is what all studies share
- `submission`: the files beside the study, and the jobs
- `commands`: calls of sbatch and squeue
"""
