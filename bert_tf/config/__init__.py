"""Typed and frozen configurations of runs, read from YAML: every key is a field.

Defaults are the paper's or google-research's, unless a comment says why not.
"""
