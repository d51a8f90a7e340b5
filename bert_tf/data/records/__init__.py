"""TFRecords of ready examples, as google-research and Model Garden write them."""
