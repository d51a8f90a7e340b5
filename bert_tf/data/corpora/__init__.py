"""Pre-training: documents, shards, pairs and masks."""
