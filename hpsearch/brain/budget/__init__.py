"""The budget of a study.

`ledger`    what it may spend, has reserved and has spent, by attempt
`headroom`  the part of it that a slot may use now, and what fits into it
`next_hour` what another hour would bring, and if that is worth it
"""
