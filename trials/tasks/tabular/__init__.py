"""Tables, for classification and regression: a multi-layer perceptron.

- `task`, `spec`, `data`, `model`: the task, its `task` part, its rows, and how it trains
- `columns`, `encoding`: what the columns of a table are, and how they become numbers
- `table_model`: the network, and a trained one in use
"""
