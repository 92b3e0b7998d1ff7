"""Study files: `init` writes one to start from, `schema` describes it to editors."""
