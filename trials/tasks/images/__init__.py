"""Image classification: a small residual network, or a pretrained model.

- `task`, `data`, `model`: the task, its `task` part and images, and its training
- `folder`: the images of a folder, each as a square in colour
- `classifier`: the residual network, and a trained one in use
- `pretrained`, `processor`: pretrained networks, and the form of their images
"""
