"""Windrow beside its floor: the fewest statements a hand-written loop could use, in one run."""
