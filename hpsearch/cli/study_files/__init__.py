"""Study files.

- `init`: writes one to start from: of `starters`, or of a command line (`command_starter`)
- `data_facts`: what the data say about it
- `schema`: describes it to editors
"""
