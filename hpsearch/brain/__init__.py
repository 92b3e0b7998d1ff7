"""The brain of a study: turns events into changed records and commands, and touches nothing else.

`study`         the brain itself: what the driver calls, and the way of one report; read this first
`agenda`        what a free slot does next
`attempts`      slots, and the attempts that hold them from launch to end
`trial_log`     what is written down about a trial
`budget`        what the study may spend, and what still fits into that
`confirmation`  the race of the leading configurations, repeated on fresh seeds
`retention`     which checkpoints are kept
`giving_up`     when a study is hopeless, or waits for room on the disk
`requests`      what people ask of a study while it runs
`continuing`    a trial that begins with a checkpoint of another one
`reopening`     a study that has ended and continues
`health`        what workers find out about training, on record
"""
