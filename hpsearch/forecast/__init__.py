"""What a study would do before it runs.

`plan`      the trials, rungs and budget, in rows
`footprint` the most that its checkpoints take on the disk
`sentence`  how long it would take
"""
