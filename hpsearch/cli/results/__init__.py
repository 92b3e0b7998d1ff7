"""Commands that read the database: a module for each, with the name of its command."""
