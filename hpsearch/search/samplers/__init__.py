"""Samplers, which draw the configurations of new trials.

`curve_gp`  our own sampler, which uses the model of learning curves
`design`    a quasi-random sequence over the whole space
`view`      a study as one of Optuna's samplers reads it
"""
