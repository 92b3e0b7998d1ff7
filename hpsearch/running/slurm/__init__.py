"""Studies as jobs of SLURM (`submission`): one script, which starts a Ray cluster and the driver.

`job.sh` is the part of it that all studies share.
"""
