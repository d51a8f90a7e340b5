"""Reading and writing checkpoints, ours and others'."""
