"""Runs: what they are, how they are stored, resumed and spread over processes."""
