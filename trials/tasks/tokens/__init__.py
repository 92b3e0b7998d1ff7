"""Token classification: the tag of each word of a sentence. `task`, `data` and `model`.

- `entities`: entities in sequences of tags, and how many of them were found
"""
