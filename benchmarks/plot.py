"""Draw a benchmark's rows as bars, with the range over repeats.

    python benchmarks/plot.py ROWS.json --label variant --value ms_a_sample --out PICTURE.svg
                              [--title TEXT]

If rows have `fastest` and `slowest`, each bar has whiskers between the two.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def main() -> None:
    """Draw the rows of a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path)
    parser.add_argument("--label", required=True, help="the column that names a row")
    parser.add_argument("--value", required=True, help="the column that is drawn")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--title", default="")
    arguments = parser.parse_args()
    rows = json.loads(arguments.rows.read_text())["rows"]
    values = [row[arguments.value] for row in rows]
    ranges = [
        [row[arguments.value] - row["fastest"], row["slowest"] - row[arguments.value]]
        for row in rows
    ]
    mpl.rcParams["svg.hashsalt"] = "hpsearch"  # the same rows give the same file
    figure = Figure(figsize=(8, 0.4 * len(rows) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(
        [row[arguments.label] for row in rows],
        values,
        xerr=list(zip(*ranges, strict=True)),
        color="#4878a8",
    )
    axes.invert_yaxis()
    axes.set_xlabel(arguments.value.replace("_", " "))
    axes.set_title(arguments.title)
    figure.savefig(arguments.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
