"""Soft actor-critic: two learners with one contract, the replay that feeds them, relabelling."""
