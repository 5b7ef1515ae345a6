"""What numbers say: enumeration, fits and statistics, handed all that they read."""
