"""A vector for a text."""

from bert_tf.checkpoints.heads import EMBEDDER, Head
from bert_tf.tasks.embedding.config import EmbeddingRun
from bert_tf.tasks.family import TaskFamily

FAMILY = TaskFamily(
    name="embedding",
    title="Embedding",
    model="bert_tf.tasks.embedding.model:TextEmbedder",
    pictures="bert_tf.tasks.embedding.pictures:EmbeddingPictures",
    config=EmbeddingRun,
    task="bert_tf.tasks.embedding.run:EmbeddingTask",
    metrics=("spearman", "ndcg@10"),
    head=Head(sentence_transformers=EMBEDDER),
)
