"""From strings to answers: exports compared with Hugging Face on PyTorch."""
