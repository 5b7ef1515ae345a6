"""Studies: what is run to learn something about ROLLIN, and how its records are made."""
