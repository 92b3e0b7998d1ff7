"""The work of a study: what a free slot does next.

`agenda`        the order of the work
`confirmation`  the race of the leading configurations, repeated on fresh seeds
"""
