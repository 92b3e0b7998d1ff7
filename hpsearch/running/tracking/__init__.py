"""Experiment trackers of a study.

- `mirror`: from the database to a tracker, which is sent nothing twice
- `senders`: a thread for each tracker, as a driver starts and ends them, and the packages they need
- `secrets`: texts without passwords
"""
