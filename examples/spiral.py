"""A program that knows nothing of hpsearch: it learns two spirals. Searched by spiral.yaml."""

import argparse
import json
import pickle
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("runs"))
options = parser.parse_args()

random = np.random.default_rng(0)
angle = np.tile(np.sqrt(random.uniform(0, 1, 600)) * 7, 2)
side = np.repeat([1, -1], 600)
points = np.stack([np.cos(angle), np.sin(angle)], 1) * (side * angle)[:, None]
points += random.normal(0, 0.3, points.shape)
held_out = np.arange(len(points)) % 4 == 0

state, done = options.out / "state.pkl", 0
network = MLPClassifier((options.width, options.width), solver=options.optimizer, max_iter=1,
                        learning_rate_init=options.lr, momentum=options.momentum)  # fmt: skip
if state.exists():
    done, network = pickle.loads(state.read_bytes())
for epoch in range(done + 1, options.epochs + 1):
    network.random_state = options.seed + epoch
    for _ in range(10):
        network.partial_fit(points[~held_out], side[~held_out], classes=[-1, 1])
    (options.out / "new.pkl").write_bytes(pickle.dumps((epoch, network)))
    (options.out / "new.pkl").replace(state)
    accuracy = network.score(points[held_out], side[held_out])
    print(json.dumps({"resource": epoch, "accuracy": accuracy}), flush=True)
