"""From gradients to weights.

- `updates`: an optimizer step: unscale, clip, apply, average.
- `optimizers`: optimizers by name, with their parameter groups.
- `schedules`: the learning rate as a function of progress.
- `averaging`: an average of the weights, which is evaluated in their place.
- `depths`: how deep in a model a parameter is.
"""
