"""The budget of a study: its limits, and what is spent.

`ledger`    the sums: reserved and spent, by attempt
`spending`  what a stretch of training may cost, and did cost
`headroom`  what still fits into the budget and the wall clock
"""
