"""Folders of this machine that are written whole or not at all, and logs of bounded size.

- `drafts`: folders in the making, each locked by the process that writes in it.
- `log_file`: a log, which several processes may write.
- `whole_folders`: a draft hashed, flushed to the disk and renamed; damage found later.
"""
