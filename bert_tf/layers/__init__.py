"""Keras layers of BERT, working on tokens laid flat as [tokens, hidden]."""
