"""What can be typed after `hpsearch`: a module for each panel of its help.

* `app`: the program; `search`, `results`, `maintenance`: its commands, in the order of the help.
"""
