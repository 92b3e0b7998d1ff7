"""The result of a study: which configuration is best, and how sure that is. Computed once, and
rendered by terminal, pages, documents and agents.

`study_result` the result as one object, read from the database
`unfinished`   trials that were not trained to the end and might still win
`training`     the way in which a configuration is trained anew
`comparison`   trials side by side: the parameters in which they differ, the levels they share
"""
