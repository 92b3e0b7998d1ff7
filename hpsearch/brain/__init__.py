"""The brain of a study: turns events into changed records and commands, and touches nothing else.

`study`          the brain itself: what the driver calls, and the way of one report; read this first
`phase`          the phase of the study, and when it ends
`reports`        a report or a question of an attempt, and the answer
`endings`        the end of an attempt, and what its trial does then
`launching`      free slots are given work
`agenda`         what a free slot does next, with the race of the leaders
`attempts`       slots, and the attempts that hold them from launch to end
`allowance`      what a slot may begin now
`budget`         what the study may spend, and what still fits into that
`trial_log`      what is written down about a trial
`requests`       what people ask of a study while it runs
`retention`      which checkpoints are kept
`reopening`      a study that has ended and continues
`micro_batches`  sizes of micro-batches that fit in memory
"""
