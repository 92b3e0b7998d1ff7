"""Facts in plain English, the same on a terminal, on pages, for agents and in notices.

`estimates` a trial's expected value and its repeats, with their intervals
`certainty` the result of a study: its first sentence, luck, gain, ties, trust in rungs
`requests`  what was asked of a study while it ran; decisions
"""
