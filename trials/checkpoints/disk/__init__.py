"""Folders and files of this machine that are written whole or not at all, and logs of bounded size.

- `drafts`: folders in the making, each locked by the process that writes in it.
- `log_file`: a log, which several processes may write.
- `names`: names from outside, which are one component of a path, or refused.
- `trees`: folders that users' programs fill: copied and removed, without following links.
- `whole_folders`: a draft hashed, flushed to the disk and renamed, and damage found later; a file
  written beside its place and renamed.
"""
