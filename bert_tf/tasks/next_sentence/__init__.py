"""Whether a text follows another one."""

from bert_tf.checkpoints.heads import NEXT_SENTENCE, Head, Place
from bert_tf.tasks.family import TaskFamily

FAMILY = TaskFamily(
    name="next_sentence",
    title="Next sentence prediction",
    model="bert_tf.tasks.next_sentence.model:NextSentence",
    pictures="bert_tf.tasks.next_sentence.pictures:NextSentencePictures",
    head=Head(
        layer="next_sentence",
        places={
            "huggingface": Place("cls.seq_relationship.", "BertForNextSentencePrediction"),
            "tf1": Place("cls/seq_relationship/"),
        },
        pools=True,
        pretraining=(NEXT_SENTENCE,),
    ),
    outputs=("is_next",),
)
