"""Commands that read the database.

- `listing`: `ls`, `status`, `trials` and `show`; `logs`: the output of a trial
- `best`; `export`: `export` and `report`
"""
