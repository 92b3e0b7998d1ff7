"""Samplers: what draws the configurations of new trials.

`curve_gp`       our own sampler, which uses the model of learning curves
`random_points`  quasi-random points, and random ones of which some follow the priors
`view`           a study as one of Optuna's samplers reads it
"""
