"""The paper's ablations, made of runs that differ in one thing: tables 5, 6 and 7, and figure 4.

Which runs belong together follows from what they are: from their sizes, from the pre-training that
they started from, and from the activations that they read.
"""

from collections.abc import Sequence

from bert_tf.report.ablations import feature_based, model_size, pretraining_tasks, training_steps
from bert_tf.report.ablations.grouping import Ablation
from bert_tf.report.runs import RunFacts


def find_ablations(facts: Sequence[RunFacts]) -> list[Ablation]:
    """The tables that some of the runs make; there may be none."""
    return [
        *pretraining_tasks.find(facts),
        *model_size.find(facts),
        *training_steps.find(facts),
        *feature_based.find(facts),
    ]
