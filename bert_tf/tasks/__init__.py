"""The tasks of BERT, each as one object: from strings to answers, trained, saved and exported.

Read `task_model.py` first: it has all that the objects share. Each family is a package with its own
parts and a record of them, `FAMILY` (`family.py`); `registry.py` finds the families.
"""
