"""The tasks of BERT, each as one object: from strings to answers, trained, saved and exported.

Each family is a package with all that belongs to it, and a record of its parts, `FAMILY`
(`bert_tf.tasks.family`). `bert_tf.tasks.registry` finds them.
"""
