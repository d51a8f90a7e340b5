"""What MediaPipe's text tasks require of a `.tflite` model with three inputs.

`TextClassifier` and `TextEmbedder` of MediaPipe tokenize themselves:
`bert_preprocessor_calculator.cc` and `bert_tokenizer.cc` in github.com/google-ai-edge/mediapipe.

- The text is lower-cased, in ASCII only, whatever the vocabulary. A cased model gets wrong ids.
- Accents stay: "café" becomes the piece "café" or [UNK], while BERT looks up "cafe".
- Spaces other than ASCII's do not separate words, and control characters stay.
- A word of more than 100 bytes becomes [UNK]; BERT takes 200 characters.
- There is one text, so all segment ids are 0.

The length is the second size of the inputs; longer texts are cut. If that size is open, -1 in the
shape signature, a text with more pieces than positions gives a wrong answer or an error.

MediaPipe returns the outputs as they are, float32 or uint8: a classifier must have the softmax or
the sigmoid in the graph, and a score for every line of `labels.txt`.
"""

from bert_tf.export.litert.conversion import INPUTS
from bert_tf.export.litert.tables import FlatTable
from bert_tf.io.vocabulary import TokenizerSettings

# A warning for those who export for MediaPipe.
DIFFERENCES = (
    "MediaPipe lowercases only ASCII letters and keeps accents, so texts with other letters or "
    "accents may get different ids than in bert_tf"
)

# The numbers of fields in schema.fbs: of a Model, of a SubGraph, of a Tensor.
_SUBGRAPHS = 2
_TENSORS, _INPUTS, _OUTPUTS = 0, 1, 2
_SHAPE, _TYPE = 0, 1
# The numbers of types of tensors.
_FLOAT32, _INT32, _UINT8 = 0, 2, 3


def obstacle(model: bytes, tokenizer: TokenizerSettings) -> str | None:
    """Why MediaPipe's text tasks cannot run a model, in a sentence; None if they can.

    Special tokens in a text and very long words, which MediaPipe always splits, are no obstacle.
    """
    subgraphs = FlatTable.root(model).tables(_SUBGRAPHS)
    if not tokenizer.lower_case:
        return "MediaPipe lowercases every text, but the vocabulary is cased"
    if not tokenizer.strips_accents:
        return "MediaPipe strips accents, but the vocabulary has them"
    if not tokenizer.split_chinese:
        return "MediaPipe splits Chinese words into characters, but the tokenizer keeps them whole"
    if added := (*tokenizer.added_tokens, *tokenizer.exact_tokens):
        return f"MediaPipe would split the added token {added[0]!r}"
    if len(subgraphs) != 1:
        return f"MediaPipe takes one length and one subgraph, but the model has {len(subgraphs)}"
    tensors = subgraphs[0].tables(_TENSORS)
    inputs = [tensors[each] for each in subgraphs[0].words(_INPUTS)]
    outputs = [tensors[each] for each in subgraphs[0].words(_OUTPUTS)]
    shapes = [each.words(_SHAPE) for each in inputs]
    if len(inputs) != len(INPUTS) or any(each.byte(_TYPE) != _INT32 for each in inputs):
        return "MediaPipe takes three inputs of int32: the ids, the mask and the segment ids"
    if any(len(each) != 2 or each[0] != 1 or each != shapes[0] for each in shapes):
        return (
            f"MediaPipe takes three inputs of the same shape [1, length], but these have {shapes}"
        )
    if any(each.byte(_TYPE) not in (_FLOAT32, _UINT8) for each in outputs):
        return "MediaPipe takes outputs of float32 or uint8"
    return None
