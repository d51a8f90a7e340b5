"""Which passages answer a query best."""

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
)
