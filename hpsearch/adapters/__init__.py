"""Code that is written for other libraries, as tasks of trials.

- `loading`: builds a task, adapted where its study file names a library
"""
