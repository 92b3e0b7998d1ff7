"""Image classification: a small residual network, or a pretrained model.

- `task`, `data`, `model`: the task, its `task` part and images, and how it trains
- `residual`, `pretrained`: the networks; `processor`: how a pretrained one wants its images
- `classifier`: a trained network in use
"""
