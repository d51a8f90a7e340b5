"""From a model's outputs to answers, as TensorFlow ops that evaluation and SavedModels share."""
