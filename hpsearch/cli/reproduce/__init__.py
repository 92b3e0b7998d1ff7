"""`hpsearch reproduce`: train a trial again, and say whether it is the same.

- `course`: how a trial was trained: where it was paused, and how far it went
- `training`: trains it again in the same parts
- `aside`: keeps what it prints apart from the results
- `comparison`: its reports and its end beside those on record
- `causes`: why they may differ, the most likely first
- `verdict`: what is printed of it
- `command`: the command itself
"""
