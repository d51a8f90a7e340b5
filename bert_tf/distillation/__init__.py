"""Knowledge distillation: a small model learns what a large one computes."""
