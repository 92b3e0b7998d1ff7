"""Weights & Biases: `translate` makes a study file of a `sweep`; `write` sends runs of trials."""
