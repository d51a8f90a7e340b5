"""Which passages answer a query best."""

import dataclasses

from bert_tf.checkpoints.heads import CROSS_ENCODER
from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.reranking.config import RerankingRun

FAMILY = TaskFamily(
    name="reranking",
    title="Re-ranking",
    model="bert_tf.tasks.reranking.model:Reranker",
    pictures="bert_tf.tasks.reranking.pictures:RankingPictures",
    config=RerankingRun,
    task="bert_tf.tasks.reranking.run:Reranking",
    metrics=("ndcg@10", "mrr@10", "map"),
    head=dataclasses.replace(
        classification.HEAD,
        arguments=("dropout",),
        outputs=1,
        takes=("TextRegressor",),
        sentence_transformers=CROSS_ENCODER,
    ),
)
