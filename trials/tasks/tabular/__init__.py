"""Tables, for classification and regression: gradient-boosted trees.

- `table_task`, `table_run`: the task with its rows, and one attempt with its checkpoints
- `boosting`: trees that grow in segments; `table_model`: trained trees in use
- `columns`, `encoding`: the `task` part with the kinds of columns, and their encoding as numbers
- `remarks`: sentences on columns that may not be what they seem
"""
