"""ROLLIN around any agent: `wrapper` for one env, `coordinator` for many, `own_agent` for a loop.

`roll_in` shows a guide the context before and lets it act, `plan_source` selects the next plan and
checks that the env can follow it, and `numpy_guide` is a guide that travels to other processes.
"""
