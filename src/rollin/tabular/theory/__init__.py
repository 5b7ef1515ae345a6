"""The paper's assumptions, constants, bounds and totals, evaluated on a given MDP."""
