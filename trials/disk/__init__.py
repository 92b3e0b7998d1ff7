"""Folders of this machine that are written whole or not at all.

- `drafts`: folders in the making, each locked by the process that writes in it.
- `whole_folders`: a draft hashed, flushed to the disk and renamed; damage found later.
"""
