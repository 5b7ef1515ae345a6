"""Many runs: studies and their conditions, and where and in which order they are done."""
