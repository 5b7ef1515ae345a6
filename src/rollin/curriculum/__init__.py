"""Curricula: contexts in order, when one is mastered, where a run stands."""
