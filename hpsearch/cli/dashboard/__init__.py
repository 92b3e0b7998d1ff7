"""The dashboard, and the gate in front of it.

* `command`: serves Optuna's dashboard on our database.
* `gate`: decides which requests reach it.
"""
