"""Engines: what turns a task and its options into a run."""
