"""Facts in plain English, the same on a terminal, on pages, for agents and in notices.

`numbers`   numbers, durations and moments
`estimates` a trial's expected value and its repeats, with their intervals
`answer`    luck, gain and ties in the answer of a study
`trust`     how far rungs can be trusted
`requests`  what was asked of a study while it ran; decisions
"""
