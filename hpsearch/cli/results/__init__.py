"""Commands that read the database.

- `ls`, `status`, `best`, `trials`, `export`, `report`, `mcp`: one command each
- `show`, `compare`, `logs`: one trial, several, and their output
- `result`: the result of a study, as `run` and `resume` end with it
"""
