"""Hyperparameter search that spends a GPU budget well, survives what dies, and says how sure it is."""
