"""The study file as text: `yaml_source` reads YAML with the line of each key, `editing` gives it
another budget; `configurations` are read of a command line."""
