"""Texts and pairs of texts, with a class, several labels or a number each.

- `text_task`, `text_model`: the tasks with their texts; the models, trained and in use
- `targets`: classes, labels and numbers, from the file to an array
"""
