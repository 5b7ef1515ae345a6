"""What numbers say: enumeration and statistics, handed all that they read."""
