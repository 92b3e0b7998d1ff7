"""What a run measures about itself.

- `instruments`: everything below behind one interface, for the training loop.
- `steps`: what the optimizer steps since the last report amount to.
- `course`: what a run remembers of its course, compactly.
- `findings`: what a course shows of a run's health.
- `gpu`: utilisation, energy and the share of peak arithmetic of a GPU.
"""
