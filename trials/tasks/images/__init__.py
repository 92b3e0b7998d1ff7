"""Image classification: a small residual network, or a pretrained model.

- `image_task`, `image_model`: the task with its images, and the networks, trained and in use
- `folder`: the images of a folder, each as a square in colour
- `processor`: the form of the images that a pretrained network reads
"""
