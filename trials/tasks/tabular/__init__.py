"""Tables, for classification and regression: a multi-layer perceptron.

- `task`, `data`, `model`: the task, its rows, and the perceptron that trains on them
- `columns`, `encoding`: the `task` part with the kinds of columns, and their encoding as numbers
- `remarks`: sentences on columns that may not be what they seem
- `table_model`: the network, and a trained one in use
"""
