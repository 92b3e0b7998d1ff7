"""The brain of a study: turns events into changed records and commands, and touches nothing else.

`study`         the brain itself: what the driver calls, and the way of one report; read this first
`agenda`        what a free slot does next
`attempts`      slots, and the attempts that hold them from launch to end
`trial_log`     what is written down about a trial
`spending`      what a stretch may cost, and did cost;  `ledger`  the sums
`headroom`      what still fits into the budget and the wall clock
`confirmation`  the race of the leading configurations, repeated on fresh seeds
`retention`     which checkpoints are kept
`giving_up`     when a study is hopeless, or waits for room on the disk
`reopening`     a study that has ended and continues
`health`        what workers find out about training, on record
"""
