"""The parts of a study, with no knowledge of databases, clusters or files.

records: a class for each table; each field is declared only there.
history: the records of one study, and which of them have changed.
facts: roles, kinds of failure and decision, and the state of the race of the best trials.
lifecycle: the states of a trial, and the one table of moves between them.
seeds: seeds that are derived from their parts.
events: what happens to a study, and the commands to an executor.
"""
