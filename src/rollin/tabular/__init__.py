"""The tabular engine: contextual MDPs, exact tools, policy gradients, Algorithm 1."""
