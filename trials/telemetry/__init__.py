"""What a run measures about itself.

- `instruments`: the steps since the last report, and everything below, for the training loop.
- `course`: what a run remembers of its course, compactly.
- `findings`: what a course shows of a run's health.
- `gpu`: utilisation, energy and the share of peak arithmetic of a GPU.
"""
