"""A new study: from a study file into the database.

- `study`: writes it, and reads a study's file out of the database
- `environment`: what it runs on, for the record
- `warm_start`: what earlier studies tell it
"""
