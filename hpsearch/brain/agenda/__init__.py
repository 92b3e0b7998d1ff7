"""The work of a study.

`agenda`        the order of the work
`confirmation`  the race of the leading configurations, repeated on fresh seeds
"""
