"""The search: proposes configurations, values reports, and decides what their trials do next.

`searcher`        everything the brain asks; read this first
`proposals`       draws the parameters of new trials
`of_plugins`      a sampler or pruner of a plugin, until it raises
`untried`         the configurations that have been tried, and those that have not
`questions`       parameters that trials ask for, because the space does not name them
`samplers`        our own samplers, and a study as Optuna's read it
`curve_model`     a Gaussian process over whole learning curves, and what it foretells
`worth`           the worth of a report
`promotion`       which paused trial goes on: the quota of its rung, its chance, and the phase
`rungs`           asynchronous successive halving: the trials at each level, and their quota
`ends`            the chances of paused trials, by how well their rung has told of ends
`ranking`         the order of configurations, and how sure it is
`fronts`          rungs of several objectives
`time_left`       the time until a study ends
`next_hour`       what another hour would bring it
"""
