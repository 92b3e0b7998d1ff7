"""The study file as text: `text_file` reads it, `editing` gives it another budget;
`configurations` are read of a command line."""
