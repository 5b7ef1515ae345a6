"""Peers of the tabular engine, each written as well as its library allows."""
