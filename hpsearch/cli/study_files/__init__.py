"""Study files: write one to start from, describe them to editors, make one of other programs'
files."""
