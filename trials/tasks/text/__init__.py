"""Texts and pairs of texts, with a class, several labels or a number each.

- `task`, `model`: the tasks with their texts, and the models that train on them
- `targets`: classes, labels and numbers, from the file to an array
- `text_model`: a trained model in use
"""
