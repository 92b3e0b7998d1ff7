"""What connects hpsearch with programs outside of it: a folder for each.

The rest of hpsearch imports none of them. It finds them, and those of other packages, by the entry
point `hpsearch.plugins` (`hpsearch.domain.plugins`).

- trackers: `mlflow`, `tensorboard`, `trackio`, `wandb`
- libraries, and places that studies come from and go to: `optuna`, `ray_tune`, `tables`
- commands and watches: `mcp`, `notify`, `prometheus`, `slurm`
"""
