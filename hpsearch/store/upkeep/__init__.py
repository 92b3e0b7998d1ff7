"""A database that is kept for years.

- `backup`: a whole copy of it, while studies run
- `thinning`: fewer reports of studies that finished long ago; `shrinking`: unused space given back
"""
