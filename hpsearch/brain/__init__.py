"""The brain of a study: turns events into changed records and commands, and touches nothing else.

`study`           the brain itself, which the driver calls; read this first
`attempt_events`  what attempts report and ask for, and how they end
`launching`       free slots are given work
`agenda`          the next work of a free slot, with the race of the leaders
`budget`          what the study may spend, and what still fits into that
`attempts`        slots, and the attempts that hold them from launch to end
`progress`        the phase of the study, and when it ends
`trial_log`       what is written down about a trial
`requests`        what people ask of a study while it runs
`retention`       which checkpoints are kept
`reopening`       a study that has ended and continues
"""
