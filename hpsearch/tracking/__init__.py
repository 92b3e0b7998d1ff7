"""Who hears of a study while it runs: experiment trackers, each through a process of its own, and
those who asked for notices.

`news`         what a tracker is told of a study and its trials, and what it must do
`mirror`       from the database to news, and to the tracker
`memory`       what a tracker has been told, in a file beside the study's checkpoints
`sender`       the process that sends to one tracker
`processes`    these processes, as a driver starts and ends them
`packages`     what must be installed
`libraries/`   the trackers
`notices`      what is worth a notice: a new best, trouble, the end
`delivery`     to a URL or a command, in a thread
`secrets`      texts without passwords
"""
