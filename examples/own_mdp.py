"""ROLLIN and the theory on your own MDP: a slippery corridor, built from plain arrays.

Run it with `python examples/own_mdp.py`, or point the command line at it:
    rollin train own_mdp:corridor --alpha 0.02 --steps 2000     (from inside examples/)
    rollin theory own_mdp:corridor --alpha 0.5
"""

import numpy as np

import rollin

CELLS, ACTIONS, SLIP = 12, 20, 0.1  # left, right, collect and 17 dummy actions


def corridor() -> rollin.ContextualMDP:
    """Context k rewards collecting near cell k; moves slip with probability 0.1."""
    transitions = np.zeros((CELLS, ACTIONS, CELLS))
    for s in range(CELLS):
        transitions[s, :, s] = 1.0
        for a, to in ((0, max(s - 1, 0)), (1, min(s + 1, CELLS - 1))):
            transitions[s, a] = 0.0
            transitions[s, a, to] += 1 - SLIP
            transitions[s, a, s] += SLIP
    rewards = np.zeros((CELLS, CELLS, ACTIONS))  # one (S, A) table per context
    for k in range(CELLS):
        distance = np.abs(np.arange(CELLS) - k)
        rewards[k, :, 2] = np.where(distance <= 1, 0.5**distance, 0.0)
    rho = np.eye(CELLS)[0]  # always start in the first cell
    return rollin.ContextualMDP(transitions, rewards, gamma=0.9, rho=rho)


def main() -> None:
    """Baseline against ROLLIN, then the lemmas' bounds."""
    mdp = corridor()
    for beta in (0.0, 0.75):
        learner = rollin.BatchSPG(mdp, alpha=0.02, seed=0, batch=400, learning_rate=0.01)
        solution = rollin.solve(mdp, beta=beta, alpha=0.02, steps=1000, learner=learner)
        name = "baseline" if beta == 0 else "ROLLIN"
        print(f"{name:<9} reached context {solution.progress.k} of {mdp.K}")
    theory = rollin.analyse(mdp.smooth_rho(0.1), alpha=0.5, beta=0.75)
    held = sum(bound.holds for bound in theory.bounds)
    print(f"theory    {held} of {len(theory.bounds)} bounds hold")


if __name__ == "__main__":
    main()
