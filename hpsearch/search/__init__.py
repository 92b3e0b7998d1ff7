"""The search: what to try next, what a report is worth, and what its trial does next.

`searcher`        everything the brain asks; read this first
`proposals`       draws the parameters of new trials
`questions`       parameters that trials ask for, because the space does not name them
`worth`           what a report is worth
`rungs`           who continues, pauses and is promoted, in a study and as an Optuna pruner
`rough_order`     trials by what was expected of them before
`time_left`       how long a study will still take
`sampler_view`    a study as Optuna's samplers read it;  `design`  quasi-random points
`optuna_private`  the one place that uses what Optuna does not offer in public
`curve_gp`        our own sampler: a Gaussian process over whole learning curves
"""
