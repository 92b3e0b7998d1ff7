"""Image classification: a small residual network, or a pretrained model.

- `task`, `spec`, `data`, `model`: the task, its `task` part, its images, and how it trains
- `residual`, `pretrained`: the networks; `processor`: how a pretrained one wants its images
- `classifier`: a trained network in use
"""
