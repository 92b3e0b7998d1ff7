"""Our own sampler: a Gaussian process over whole learning curves.

`sampler`   Optuna's interface to it: proposes configurations
"""
