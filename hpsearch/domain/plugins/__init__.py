"""Plugins: what they may offer, and how they are found.

news: a study and its trials as a tracker takes them, and the interface of trackers.
queued: the jobs of studies, as launchers tell of them.
offers: the things that a plugin may offer.
door: the plugins that are installed.
"""
