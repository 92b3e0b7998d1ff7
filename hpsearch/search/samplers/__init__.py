"""Samplers: what draws the configurations of new trials.

`curve_gp`         our own sampler, which uses the model of learning curves
`design`           quasi-random points
`informed_random`  random points, of which some follow the priors
`view`             a study as one of Optuna's samplers reads it
"""
