"""A new study: from a study file into the database.

- `study`: writes it, and reads a study's file out of the database
- `environment`: its packages, device, code and data, for the record
- `warm_start`: the evidence of earlier studies
"""
