"""Experiment trackers of a study, each with a process of its own, and notices to people.

- `news`: a study and its trials as trackers take them, and the interface of trackers
- `mirror`: from the database to news, and to the tracker, which is sent nothing twice
- `sender`: the process that sends to one tracker
- `processes`: these processes, as a driver starts and ends them, and the packages they need
- `notices`: events worth a notice, and their delivery to a URL or a command
- `secrets`: texts without passwords
"""
