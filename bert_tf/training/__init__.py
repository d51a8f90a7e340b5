"""The training loop, on one device or many: updates, checkpoints, resuming."""
