"""The pieces that fill the gaps of a text."""

from bert_tf.checkpoints.heads import MASKED_LM, Head
from bert_tf.tasks.family import TaskFamily

FAMILY = TaskFamily(
    name="masked_lm",
    title="Masked language model",
    model="bert_tf.tasks.masked_lm.model:MaskedLM",
    pictures="bert_tf.tasks.masked_lm.pictures:GapPictures",
    head=Head(pretraining=(MASKED_LM,)),
    outputs=("tokens", "probabilities"),
    lists=(("tokens", "probabilities"),),
)
