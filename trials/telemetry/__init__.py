"""What a run measures about itself.

- `instruments`: the steps since the last report, and everything below, for the training loop.
- `history`: the losses and reports of a run, compactly.
- `findings`: the health of a run, judged by its history.
"""
