"""What is shown by pairs of runs on the same seeds, whenever one looks.

`evidence`     the evidence in paired differences
`question`     what a study may ask by repeats
`race`         which trial is best
`certificate`  whether the best one is better than the defaults
`referee`      whether changed code is better
"""
