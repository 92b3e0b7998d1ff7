"""Your own training function: a small network learns digits. Searched by digits.yaml."""

import torch
from sklearn.datasets import load_digits
from torch import nn


def train(params, trial):
    torch.manual_seed(trial.seed)
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images, dtype=torch.float32, device=trial.device) / 16
    labels = torch.tensor(labels, device=trial.device)
    held_out = torch.arange(len(labels), device=trial.device) % 5 == 0

    width, dropout = params.get("width", 64), params.get("dropout", 0.1)
    hidden = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(dropout))
    model = nn.Sequential(hidden, nn.Linear(width, 10)).to(trial.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=params.get("learning_rate", 1e-3))
    done = 0
    if trial.checkpoint is not None:  # continue where an earlier attempt stopped
        state = torch.load(trial.checkpoint / "state.pt", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]

    for epoch in range(done + 1, trial.budget + 1):
        torch.manual_seed(trial.seed + epoch)  # so that a resumed trial draws the same
        model.train()
        for batch in torch.randperm(int((~held_out).sum())).split(params["batch_size"]):
            wanted = labels[~held_out][batch]
            loss = nn.functional.cross_entropy(model(images[~held_out][batch]), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(images[held_out]).argmax(dim=1) == labels[held_out]).float().mean()
        with trial.save() as folder:
            weights, moments = model.state_dict(), optimizer.state_dict()
            state = {"model": weights, "optimizer": moments, "done": epoch}
            torch.save(state, folder / "state.pt")
        trial.report(epoch, {"accuracy": accuracy, "loss": loss})
