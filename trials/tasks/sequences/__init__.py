"""Tasks whose model predicts tokens, or a class of each token.

- `language`, `pairs`, `tokens`: the tasks, from the file to arrays
- `data`, `workload`: their prepared data, and the models that train on it
- `entities`: entities in sequences of tags, and their scores
"""
