"""What a run does, as typed and frozen configuration read from YAML.

Every key is a field of a class: section by section here, and in each task family. Defaults are
those of the paper or of google-research's scripts, unless the comment says why not.
"""
