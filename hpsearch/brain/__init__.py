"""The brain of a study: turns events into changed records and commands, and touches nothing else.

`study`           the brain itself, which the driver calls; read this first
`attempt_events`  reports and questions of attempts, and their ends
`launching`       work for free slots
`agenda`          the next work of a free slot, with the race of the leaders
`budget`          the budget of the study, and the work that still fits into it
`attempts`        slots, and the attempts that hold them from launch to end
`node_health`     nodes on which trials fail while others work
`progress`        the phase of the study, and the reason for its end
`trial_log`       the record of a trial
`requests`        requests of people while a study runs
`retention`       the checkpoints that are kept
`reopening`       a study that continues after its end
"""
