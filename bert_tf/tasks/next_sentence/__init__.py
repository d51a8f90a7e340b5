"""Whether a text follows another one."""

from bert_tf.tasks.family import TaskFamily

FAMILY = TaskFamily(
    name="next_sentence",
    title="Next sentence prediction",
    model="bert_tf.tasks.next_sentence.model:NextSentence",
    pictures="bert_tf.tasks.next_sentence.pictures:NextSentencePictures",
)
