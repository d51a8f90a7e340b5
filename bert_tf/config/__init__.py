"""What a run does, as typed and frozen configuration read from YAML.

Every key that a file may set is a field of a class, with its meaning and its default: section by
section in `data`, `model` and `train` here, and in `config.py` of each task family. Defaults are
those of the paper or of google-research's scripts, unless the comment says why not.
"""
