"""Texts and pairs of texts: which class or which labels they have, or a number for each.

- `task`, `data`, `model`: the tasks, their texts, and how they train
- `targets`: what is learnt of a text, from the file to an array
- `heads`, `scores`: what a model's outputs are then, their losses and their metrics
- `written`: a trained model in use
"""
