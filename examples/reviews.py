"""Reviews made on the spot: reviews.csv. Searched by reviews.yaml and lora.yaml."""

import csv
import random
from pathlib import Path

THINGS = ["the coffee", "the cake", "our table", "the waiter", "the music", "the bill", "the view"]
PRAISE = ["wonderful", "a delight", "very good", "perfect", "as it should be", "worth the trip"]
BLAME = ["cold", "a let-down", "far too loud", "slow", "sticky", "not worth the trip"]
LABELS = {0: "bad", 1: "mixed", 2: "good"}
ROWS = 2000


def opinion(draw: random.Random) -> tuple[str, bool]:
    """Half a sentence, and whether it praises: "never slow" does, "hardly perfect" does not."""
    praises = draw.random() < 0.5
    word = draw.choice(PRAISE if praises else BLAME)
    if draw.random() < 0.3:
        return f"{draw.choice(THINGS)} was {draw.choice(['hardly', 'never'])} {word}", not praises
    return f"{draw.choice(THINGS)} was {word}", praises


draw = random.Random(7)
with Path(__file__).with_name("reviews.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["review", "opinion"])
    for _ in range(ROWS):
        (first, praises), (second, praises_too) = opinion(draw), opinion(draw)
        rows.writerow([f"{first.capitalize()}, and {second}.", LABELS[praises + praises_too]])
