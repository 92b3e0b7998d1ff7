"""What a study is made of, with no knowledge of databases, clusters or files.

records: a class a table, and the history that holds them; each field is declared only there.
facts: what the program itself knows of trials (roles, kinds of failure and decision, the race).
lifecycle: the states of a trial and the one table of moves.
events: what happens to a study, and what is ordered of an executor.
"""
