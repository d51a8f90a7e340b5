"""What the small tables are made of: every job, in an order in which each finds what it needs."""

from bert_tf.experiments.small.job import Job, Sources
from bert_tf.experiments.small.own_tables import finetunings, pretrainings
from bert_tf.experiments.small.published_tables import runs_of_published

TABLES = ("1", "2", "3", "4", "5", "6", "7", "figure 4")


def jobs(sources: Sources) -> list[Job]:
    """All jobs for which there are data."""
    return [
        *_preparation(sources),
        *pretrainings(sources),
        *finetunings(sources),
        *runs_of_published(sources),
    ]


def _preparation(sources: Sources) -> list[Job]:
    """Corpus, vocabulary, and SQuAD's dev file in two."""
    own = ("5", "6", "figure 4")
    corpus, vocabulary, parts = sources.corpus, sources.vocabulary, sources.squad
    novels, wikitext = sources.data / "novels", sources.data / "wikitext2" / "train.txt"
    squad = sources.data / "squad" / "dev-v1.1.json"
    return [
        Job(
            own,
            "bert_tf.experiments.small.corpus",
            ("--novels", str(novels), "--wikitext", str(wikitext), "--out", str(corpus)),
            corpus,
            given=(novels, wikitext),
        ),
        Job(
            own,
            "bert_tf",
            ("vocab", "--input", str(corpus), "--size", "8000", "--out", str(vocabulary)),
            vocabulary,
            needs=(corpus,),
        ),
        Job(
            ("2", "5"),
            "bert_tf.experiments.squad.split_by_article",
            (str(squad), "--train", "38", "--out", str(parts)),
            # The one that is written last.
            parts / "dev-v1.1.json",
            given=(squad,),
        ),
    ]
