"""Commands that read the database.

- `listing`: `ls`, `trials` and `show`; `logs`: the output of a trial
- `status`, `best`: one command each; `export`: `export` and `report`
"""
