"""Seeds that are derived from their parts, so that a resumed study derives the same ones."""

import hashlib


def derived_seed(*parts: object) -> int:
    """A seed of 31 bits that depends on all of the parts and nothing else."""
    text = "/".join(map(str, parts))
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
