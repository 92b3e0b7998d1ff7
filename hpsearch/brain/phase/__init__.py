"""The phase of a study, and when it ends.

`progress`   the phase, and the reasons to leave it
`giving_up`  when a study is hopeless, and when it waits for room on the disk
"""
