"""Tickets of a help desk made on the spot: tickets.csv. Searched by tickets.yaml."""

import csv
import random
from pathlib import Path

SUBJECTS = ["My order", "The parcel", "Your shop", "The app", "A question", "Hello"]
COMPLAINTS = {
    "billing": ["I was charged twice", "the invoice is wrong", "you owe me a refund"],
    "delivery": ["nothing has arrived", "the box was empty", "the courier left"],
    "legal": ["my lawyer will write to you", "this is against the law", "I will see you in court"],
}
SHARES = {"billing": 0.4, "delivery": 0.3, "legal": 0.04}
"""How many tickets are about each; a ticket may be about several, or about none."""
SMALL_TALK = ["I am waiting", "please answer", "thank you", "I tried everything", "good morning"]
ROWS = 2000

draw = random.Random(7)
with Path(__file__).with_name("tickets.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["subject", "message", *COMPLAINTS])
    for _ in range(ROWS):
        about = [topic for topic, share in SHARES.items() if draw.random() < share]
        said = [draw.choice(COMPLAINTS[topic]) for topic in about]
        said += draw.sample(SMALL_TALK, 2)
        draw.shuffle(said)
        marks = [int(topic in about) for topic in COMPLAINTS]
        rows.writerow([draw.choice(SUBJECTS), ", ".join(said), *marks])
