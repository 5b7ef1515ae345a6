"""The complexity study: how the cost until solved grows with the size of an MDP.

`study` has its conditions and fits the laws, `figures` draws them. The families of MDPs and
the methods are `rollin.tabular.families` and `until_solved`; `rollin reproduce complexity` runs it.
"""
