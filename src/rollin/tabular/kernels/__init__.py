"""Compiled inner loops of the tabular engine.

Layout. Actions are padded to P = 2^bits buckets, so that the pair (s, a) is at s·P + a. A state
is stored premultiplied (s·P). A successor word is the premultiplied next state with the success
flag in its top bit; stochastic dynamics have 2^fan such words per pair and an alias table over
them. `tables` makes these arrays.

    kernel                                     reference, in tests/tabular
    draws      random words, alias tables      `reference`, bit for bit
    rollouts   BatchSPG's gradient step        `reference`, bit for bit; soft.batch_gradient
               roll-in, random horizons        soft.visitation, soft.policy_gradient
    exact      ExactPG and NaturalPG           those learners, step by step
"""
