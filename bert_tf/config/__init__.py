"""What a run does, as typed and frozen configuration read from YAML: every key is a field.

Defaults are the paper's or google-research's, unless the comment says why not.
"""
