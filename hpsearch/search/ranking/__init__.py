"""The order of configurations, and how sure it is.

`selection`   puts trials in order, best first, and marks those that tie with the best
`pareto`      the trials that no other one beats, where there are several objectives
`again`       the outcome of training a configuration again; `evaluation`: the luck in an accuracy
`repeats`     repeats with other seeds: means, intervals, and the trials that are behind
`verdicts`    what pairs of runs show: of the best trial and the defaults, of changed code
`in_order`    the same while a study runs: read again only where trials have changed
`contenders`  the trials that have learnt something, and the complete ones that may be the best
`metric_bounds` the bounds of a metric
`no_effect`   parameters in which trials differ, and whose reports are the same
`trust`       the correlation of the standing at a rung with the end
"""
