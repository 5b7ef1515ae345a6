"""Environments, and what stands between them and the algorithms."""
