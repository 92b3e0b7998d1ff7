"""Frames that pictures and tables show, computed from the history of a study.

* `compute_time`: what was used at a moment, and for what; each value better than all before it.
* `configurations`: parameters and what became of them; `importances`: which of them mattered.
"""
