"""The run of a study: its parts, chosen by its study file and joined.

- `on_ray`: the whole run, on a Ray cluster
- `brain`: the brain over a study's history
- `workers`: the configuration of the workers
- `ownership`: leases, for as long as somebody drives or changes a study
- `watching`: what plugins offer to watch it with
- `signals`: Ctrl-C, SIGTERM and the like
- `ends`: the ends of a study that may go on, as errors
- `retries`: failed trials that run again
- `versions`: the code, data and study file that trials were trained with; `revision`: a change of
  code that is to be tested
- `requests`: requests to a study that runs elsewhere; `file_changes`: a study file that was changed
"""
