"""Frames that pictures and tables show, computed from the history of a study.

* `clocks`: compute time at a moment; `spending`: the use of the compute time.
* `progress`: each report that was better than all before it.
* `configurations`: parameters and what became of them; `importances`: which of them mattered.
"""
