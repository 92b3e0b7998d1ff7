"""Experiment trackers of a study, and notices to people.

- `mirror`: from the database to a tracker, which is sent nothing twice
- `senders`: a thread for each tracker, as a driver starts and ends them, and the packages they need
- `notices`: events worth a notice, and their delivery to a URL or a command
- `secrets`: texts without passwords
"""
