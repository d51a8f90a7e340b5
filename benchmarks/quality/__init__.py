"""Quality and training time compared with Hugging Face on PyTorch.

Both have the same data, seeds and hyper-parameters.
"""
