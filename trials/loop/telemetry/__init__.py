"""Measurements of a run by itself.

- `instruments`: the steps since the last report, and the other modules, for the training loop.
- `history`: the losses and reports of a run, compactly.
- `findings`: the health of a run, judged by its history.
"""
