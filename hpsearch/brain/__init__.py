"""The brain of a study: turns events into changed records and commands, and touches nothing else.

`study`           the brain itself, which the driver calls; read this first
`context`         what the parts share
`attempt_events`  reports and questions of attempts, and their ends
`agenda`          the next work of a free slot, and the repeats of the leaders (`confirmation`)
`budget`          what is spent and reserved (`ledger`), and what a slot may use (`headroom`)
`attempts`        slots, the attempts that hold them, and nodes that are set aside
`progress`        the phase of the study, and the reason for its end
`trial_log`       the record of a trial
`requests`        requests of people while a study runs
`retention`       the checkpoints that are kept
`reopening`       a study that continues after its end
`widening`        a study that goes on in another space
"""
