"""The official metrics of each task, from the libraries that define them."""
