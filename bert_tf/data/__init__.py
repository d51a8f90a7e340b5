"""Files to `tf.data` datasets of examples."""
