"""What is shown by pairs of runs on the same seeds, whenever one looks.

`evidence`     the evidence in paired differences
`certificate`  whether a trial is better than the defaults
`referee`      whether changed code is better
"""
