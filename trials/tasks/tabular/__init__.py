"""Tables, for classification and regression: a multi-layer perceptron.

- `table_task`, `table_model`: the task with its rows, and the perceptron, trained and in use
- `columns`, `encoding`: the `task` part with the kinds of columns, and their encoding as numbers
- `remarks`: sentences on columns that may not be what they seem
"""
