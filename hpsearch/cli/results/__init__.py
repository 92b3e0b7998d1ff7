"""Commands that read the database.

- `ls`, `status`, `best`, `trials`, `export`, `report`, `mcp`: one command each
- `show`, `logs`: one trial or several, and the output of one
- `result`: the result of a study, as `run` and `resume` end with it
"""
