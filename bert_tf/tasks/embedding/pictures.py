"""Pictures of an embedder: attention, and its texts in one plane."""

import numpy as np

from bert_tf.interpret.importance import Inputs
from bert_tf.interpret.pictures import EncoderPictures


class EmbeddingPictures(EncoderPictures):
    """Pictures of a `TextEmbedder`; each point is the vector that it gives a text."""

    accepted = (("text",),)
    note = "Each point is a text: the vector that the model gives it."

    def vector(self, inputs: Inputs) -> np.ndarray:
        return self.subject.model(inputs, training=False)[0].numpy()
