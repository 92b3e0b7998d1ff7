"""Weights & Biases: `translate` makes a study file of a sweep, with `distributions` and `program`;
`write` sends runs of trials."""
