"""Token classification: the tag of each word of a sentence. `task` with its data, and `model`.

- `entities`: entities in sequences of tags, and their scores
"""
