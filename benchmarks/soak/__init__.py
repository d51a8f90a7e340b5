"""Faults at random moments of a training, and what comes of them."""
