"""From strings to answers: exports beside Hugging Face on PyTorch."""
