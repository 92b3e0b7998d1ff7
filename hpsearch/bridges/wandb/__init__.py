"""Weights & Biases.

`translate` makes a study file of a sweep, with its `distributions`; `write` sends runs of trials.
"""
