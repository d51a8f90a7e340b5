"""`.tflite` files: what is stored in them next to the network."""
