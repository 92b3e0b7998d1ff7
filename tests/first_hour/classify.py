"""Trains a small network on rings of points, with its settings on the command line."""

import argparse

import torch
from torch import nn


def make_rings(count):
    points = torch.randn(count, 2)
    return points, (points.norm(dim=1) > 1.2).long()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="adam")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="model.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    points, rings = make_rings(256)
    held_out, truth = make_rings(128)
    model = nn.Sequential(nn.Linear(2, args.width), nn.Tanh(), nn.Linear(args.width, 2))
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    optimizer = kinds[args.optimizer](model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        for batch in torch.randperm(256).split(32):
            loss = nn.functional.cross_entropy(model(points[batch]), rings[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = (model(held_out).argmax(1) == truth).float().mean().item()
        print(f"epoch {epoch}: accuracy {accuracy:.3f}")

    torch.save(model.state_dict(), args.output)
    print(f"saved {args.output}")


if __name__ == "__main__":
    main()
