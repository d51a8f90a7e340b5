"""Experiments: the configurations of the paper's tasks, and whole programs on top of the library.

`bert-tf finetune glue/cola` finds `glue/cola.yaml` here. `bert-tf demo` and `bert-tf report` are
two of the programs; the others run as `python -m bert_tf.experiments.NAME`. The library imports
none of them.
"""
