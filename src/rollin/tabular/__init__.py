"""The tabular engine: contextual MDPs, exact tools, policy gradients, ROLLIN in theory."""
