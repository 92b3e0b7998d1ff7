"""Study files to start from, with comments.

- `starters`: a starter for each kind of task
- `data`: the parts of a starter that follow from training data
- `command_lines`: a starter of a command line whose numbers are searched
- `hydra_overrides`: what a multirun of Hydra sweeps
- `shell_loops`: the command line and the grids of a shell's loops
- `draft`: a study file in the making, from the search of another program
"""
