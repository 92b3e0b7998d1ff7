"""A model of whole learning curves, which the forecast of every study and `curve_gp` use.

`forecast`  what is expected of trials in full; read this first
`curves`    what trials have shown so far, as evidence;  `blend`  the validation loss in it
`earlier`   evidence of earlier studies
`model`     the Gaussian process
`survival`  where trials fail
`encoding`  configurations as points;  `belief`  priors as a density over them
"""
