"""Models that a `task` part names."""

from trials.descriptions.models import Scratch


def test_heads_and_feed_forward_follow_the_width():
    assert Scratch.parse({"width": 256}) == Scratch(layers=2, width=256, heads=4, feed_forward=1024)
    assert Scratch.parse({}) == Scratch()
