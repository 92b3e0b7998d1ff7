"""The order of configurations, and how sure it is.

`selection`  puts trials in order, best first, and marks those that cannot be told from the best
`pareto`     the trials that no other one beats, where there are several objectives
`repeats`    what repeats with other seeds say: means, intervals, and which trials are behind
`contenders` which trials have learnt something, and which complete ones may be the best
`ranges`     the values that a metric can have
`trust`      how far the standing at a rung foretold the end
"""
