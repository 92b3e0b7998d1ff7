"""Prices of houses made on the spot: houses.csv, with numbers, classes and gaps.

Searched by houses.yaml.
"""

from pathlib import Path

import numpy as np
import pandas as pd

ROWS = 2000
CITIES = {"Ada": 1.0, "Bell": 1.4, "Cork": 0.8, "Dale": 2.1}
"""What a square metre costs, relative to the first."""

draw = np.random.default_rng(7)
houses = pd.DataFrame(
    {
        "city": draw.choice(list(CITIES), ROWS),
        "area": draw.uniform(30, 200, ROWS).round(1),
        "rooms": draw.integers(1, 7, ROWS),
        "year": draw.integers(1900, 2025, ROWS),
        "garden": draw.choice(["yes", "no"], ROWS),
    }
)
age = 2025 - houses["year"]
per_metre = 2.0 * houses["city"].map(CITIES) * (1 + 0.3 * np.cos(age / 20))
garden = np.where(houses["garden"] == "yes", 25.0, 0.0)
noise = draw.normal(0, 10, ROWS)
houses["price"] = (per_metre * houses["area"] + garden + noise).round(2)
houses.loc[draw.random(ROWS) < 0.05, "year"] = np.nan  # gaps, as every real table has them
houses.to_csv(Path(__file__).with_name("houses.csv"), index=False)
