"""Expressions, such as ``heads * 8 <= width``: conditions and requirements of a study file, filters
of the trial database.

`parsing`   from text to its parts; errors point at the place
`meaning`   an expression of a study file: its names, its mistakes, its truth; and as a field
`patterns`  the texts of `like`
"""
