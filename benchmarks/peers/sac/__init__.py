"""Contestants of the SAC benchmark: ours, packages, and scripts' structures written anew.

The peers run in an environment of their own, which does not have rollin: nothing here but
`ours.py` may import it.
"""
