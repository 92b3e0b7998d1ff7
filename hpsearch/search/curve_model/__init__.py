"""A model of whole learning curves, which the forecast of every study and `curve_gp` use.

`forecast`  the expectations of trials in full; read this first
`curves`    the curves of trials so far, as evidence;  `blend`  the validation loss in it
`earlier`   evidence of earlier studies
`model`     the Gaussian process
`survival`  the probability that a configuration does not fail
`encoding`  configurations as points;  `belief`  priors as a density over them
"""
