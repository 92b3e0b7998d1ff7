"""The search: what to try next, what a report is worth, and what its trial does next.

`searcher`        everything the brain asks; read this first
`proposals`       draws the parameters of new trials
`questions`       parameters that trials ask for, because the space does not name them
`samplers`        our own samplers, and a study as Optuna's read it
`curve_model`     a Gaussian process over whole learning curves, and what it foretells
`worth`           what a report is worth
`rungs`           who continues, pauses and is promoted
`rough_order`     trials by what was expected of them before
`time_left`       how long a study will still take
`optuna_private`  calls of what Optuna does not offer in public
"""
