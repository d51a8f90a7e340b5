"""Vectors of texts compared with sentence-transformers: what they are, learn and cost."""
