"""Files -> tf.data of examples."""
