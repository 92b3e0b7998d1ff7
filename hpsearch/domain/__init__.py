"""The parts of a study, with no knowledge of databases, clusters or files.

records: a class for each table; each field is declared only there.
history: the records of one study, and the changes of them.
paces: the seconds that trials take for a unit of their budget, by type of device.
sharing: how many trials share a GPU, by the speeds of trials at once.
packed: the reports of trials that have ended, in less memory.
facts: roles, kinds of failure and decision, and how far the best trials are confirmed.
moves: tables of moves from state to state.
lifecycle: the states of a trial, and their moves.
phase: the phases of a study, and their moves.
seeds: seeds that are derived from their parts.
numbers: numbers, durations, moments and errors as people read them.
plugins: what plugins may offer, and the door that finds them.
events: the events of a study, and the commands to an executor.
"""
