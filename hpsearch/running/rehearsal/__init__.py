"""A study tried out before it is paid for.

- `first_step`: one training step and one evaluation step of a built-in task, at its heaviest
- `first_trial`: one trial of any task, up to its first report
- `other_values`: the same trial with other values, whose reports must differ
- `proposed_pattern`: patterns for reports, from lines that were none
- `first_look`: a command for a short while, to see what it prints
- `shared_files`: files that trials write to places which all of them share
- `used_process`: the same trial in a process that has trained another one
"""
