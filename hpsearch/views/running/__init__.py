"""A study while it runs: `live` watches it from inside its driver, `panel` draws it."""
