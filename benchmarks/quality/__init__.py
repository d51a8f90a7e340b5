"""Quality and training time beside Hugging Face on PyTorch: same data, seeds, hyper-parameters."""
