"""Commands that read the database.

- `ls`, `status`, `best`, `trials`, `show`, `compare`, `logs`, `export`, `report`: one command each
- `answer`: what a study has found, as `run` and `status` end with it
- `watching`: the same command again, whenever its study has changed
"""
