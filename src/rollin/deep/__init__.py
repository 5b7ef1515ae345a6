"""Deep reinforcement learning on the SAC learners."""
