"""A new study: from a study file into the database.

- `study`: writes it, with its environment, and reads a study's file out of the database
- `seal`: the digests of its code and data
- `warm_start`: the evidence of earlier studies
- `sources`: past runs and study files, from what plugins read; `past_runs`: runs on their way here
"""
