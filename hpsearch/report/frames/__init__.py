"""What figures are drawn from: frames that are computed from the course of a study.

* `clocks`: compute time and wall clock at a moment; `spending`: where the time went.
* `progress`: each report that was better than all before it.
* `configurations`: parameters and what became of them; `importances`: which of them mattered.
* `thinning`: fewer points and curves, for pictures of large studies.
"""
