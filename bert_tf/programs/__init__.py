"""Whole programs on top of the library, one folder or file for each.

`bert-tf demo` and `bert-tf report` are two of them; the others run as `python -m
bert_tf.programs.NAME`. The library does not import them.
"""
