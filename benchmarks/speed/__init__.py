"""Speed beside the peers, on the same machine, with the same weights and in turns."""
