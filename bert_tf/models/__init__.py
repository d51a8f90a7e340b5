"""The encoder with a head, as Keras models: losses, metrics, steps of training."""
