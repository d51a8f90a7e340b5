"""Speed compared with peers, on the same machine, with the same weights and in turns."""
