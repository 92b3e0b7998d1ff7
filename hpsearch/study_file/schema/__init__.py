"""The study file as a JSON Schema, for editors: `document` is the whole of it, and `parts` has what
depends on samplers, pruners and tasks."""
