"""The pair of SavedModels that TF Hub has for a BERT: a preprocessor of texts and an encoder.

`hub.load` and `hub.KerasLayer` find in them the functions and attributes of the common SavedModel
APIs for text. Source: `official/nlp/tools/export_tfhub_lib.py` in tf-models-official.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import native
from bert_tf.checkpoints.description import describe
from bert_tf.checkpoints.names import weight_names
from bert_tf.encoder.encoder import INPUTS, Encoder
from bert_tf.errors import UserError
from bert_tf.export.served_model import Form, model_facts
from bert_tf.export.service import Service, Signature, Tensors, ids, strings
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.text import Features, Preprocessor, Tokenizer, pack
from bert_tf.text.rows import positions

# The default length of TF Hub's preprocessors.
LENGTH = 128

_POSITIONS = tf.TensorSpec([None, None], tf.int32, "masked_lm_positions")


class HubPreprocessor(Service):
    """`text` -> the encoder's inputs, [batch, max_length]; and its steps one by one."""

    task = "preprocessing for a BERT encoder"

    def __init__(self, tokenizer: Tokenizer, max_length: int):
        super().__init__(tokenizer)
        self._preprocess = Preprocessor(tokenizer, max_length)

    def facts(self) -> dict[str, Any]:
        return {
            "class": "Preprocessor",
            "lower_case": self.tokenizer.lower_case,
            **self.tokenizer.settings.besides_casing,
            "max_length": self._preprocess.max_length,
        }

    def signatures(self) -> dict[str, Signature]:
        example = {"text": ["What a lovely film."]}
        return {"serving_default": Signature(strings("text"), self.answer, example)}

    def answer(self, inputs: Mapping[str, tf.Tensor]) -> Tensors:
        """`input_word_ids`, `input_mask`, `input_type_ids`, each int32 [batch, max_length]."""
        return self._preprocess(inputs["text"])

    def attributes(self) -> dict[str, Any]:
        texts = [tf.TensorSpec([None], tf.string, "text")]
        special_tokens = tf.function(self._special_tokens, input_signature=[], autograph=False)

        def traced(compute: Callable) -> tf.types.experimental.GenericFunction:
            return tf.function(compute, input_signature=texts, autograph=False)

        def tokenizing(tokenize: Callable) -> tf.train.Checkpoint:
            return tf.train.Checkpoint(
                __call__=traced(tokenize), get_special_tokens_dict=special_tokens
            )

        return {
            "__call__": traced(self._preprocess),
            "tokenize": tokenizing(lambda text: self._by_word(text)[0]),
            "tokenize_with_offsets": tokenizing(self._by_word),
            "bert_pack_inputs": tf.train.Checkpoint(__call__=self._pack_inputs()),
        }

    def _by_word(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Ids, starts and ends (bytes), each RaggedTensor int32 [batch, (words), (pieces)]."""
        pieces = self.tokenizer.tokenize_with_offsets(text)
        ids = pieces.ids
        is_first = tf.constant([not each.startswith("##") for each in self.tokenizer.vocabulary])
        starts_word = tf.gather(is_first, ids.values)
        words = tf.concat([positions(starts_word), [tf.size(ids.values)]], axis=0)
        words_before = tf.cumsum(tf.cast(starts_word, tf.int64))
        words_before = tf.concat([tf.zeros([1], tf.int64), words_before], axis=0)
        splits = [tf.gather(words_before, ids.row_splits), tf.cast(words, tf.int64)]
        return tuple(
            tf.RaggedTensor.from_nested_row_splits(each.values, splits, validate=False)
            for each in pieces
        )

    def _special_tokens(self) -> Tensors:
        tokenizer = self.tokenizer
        numbers = {
            "start_of_sequence_id": tokenizer.cls_id,
            "end_of_segment_id": tokenizer.sep_id,
            "padding_id": tokenizer.pad_id,
            "mask_id": tokenizer.mask_id,
            "vocab_size": tokenizer.vocab_size,
        }
        return {name: tf.constant(number, tf.int32) for name, number in numbers.items()}

    def _pack_inputs(self) -> tf.types.experimental.GenericFunction:
        """One or two segments, as pieces or as words of pieces -> the encoder's inputs."""

        @tf.function(autograph=False)
        def bert_pack_inputs(
            inputs: list[tf.RaggedTensor], seq_length: tf.Tensor | int = self._preprocess.max_length
        ) -> Features:
            segments = [each if each.ragged_rank == 1 else each.merge_dims(1, 2) for each in inputs]
            return pack(segments, self.tokenizer, seq_length)

        length = tf.TensorSpec([], tf.int32, "seq_length")
        for segments in (1, 2):
            for rank in (2, 3):
                given = [tf.RaggedTensorSpec([None] * rank, tf.int32)] * segments
                bert_pack_inputs.get_concrete_function(given, seq_length=length)
        return bert_pack_inputs


class HubEncoder(Service):
    """The encoder's inputs -> `pooled_output`, `sequence_output`, `encoder_outputs`, `default`.

    It can be trained further. If the model is a `PreTrainer`, it also has `.mlm`, which takes the
    additional input `masked_lm_positions` and adds the output `mlm_logits`.
    """

    trains = True
    task = "encoding of texts"

    def __init__(self, model: Encoder | EncoderModel, tokenizer: Tokenizer):
        # The SavedModel holds the model's own variables, so that they can be trained.
        super().__init__(tokenizer)
        self._model = model
        self._has_head = hasattr(model, "masked_lm")
        self._encoder = model.encoder if self._has_head else model
        self.config = self._encoder.config
        if self._encoder.pooler is None:
            raise UserError(
                "TF Hub encoders return the output of a pooler, but this encoder has no pooler; "
                "create it with one, or export with the kind embedding"
            )

    def facts(self) -> dict[str, Any]:
        return model_facts(self._model, Form(device="any"))

    def signatures(self) -> dict[str, Signature]:
        """One signature; its outputs cannot include a list, such as `encoder_outputs`."""
        row = [self.tokenizer.cls_id, self.tokenizer.mask_id, self.tokenizer.sep_id]
        example = dict(zip(INPUTS, ([row], [[1, 1, 1]], [[0, 0, 0]]), strict=True))
        return {"serving_default": Signature(ids(), self.answer, example)}

    def answer(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Tensors:
        """The tensors among the outputs; `default` is the same as `pooled_output`."""
        outputs = self._encode(inputs, training)
        return {name: each for name, each in outputs.items() if isinstance(each, tf.Tensor)}

    def attributes(self) -> dict[str, Any]:

        @tf.function(input_signature=[ids()], autograph=False)
        def serve_training(inputs: Features) -> Tensors:
            return self.answer(inputs, training=True)

        weights = {
            name: weight.value
            for name, weight in weight_names(self._model).items()
            if not name.startswith("next_sentence/")
        }
        encoder = [weight for name, weight in weights.items() if name.startswith("encoder/")]
        attributes = {
            "weights": weights,
            "do_lower_case": tf.Variable(self.tokenizer.lower_case, trainable=False),
            "serve_training": serve_training,
            **self._layer(self._encode, ids(), encoder),
        }
        if self._has_head:
            inputs = ids() | {_POSITIONS.name: _POSITIONS}
            layer = self._layer(self._masked_lm, inputs, list(weights.values()))
            attributes["mlm"] = tf.train.Checkpoint(**layer)
        return attributes

    def assets(self) -> dict[str, str]:
        # bert_tf reads the sizes from the description.
        description = describe(self._model, self.tokenizer)
        if self._has_head:
            description = dataclasses.replace(
                description, model=PreTrainer.__name__, head={"next_sentence": False}, settings={}
            )
        fields = native.description_fields(description)
        return super().assets() | {native.DESCRIPTION_FILE: json.dumps(fields, indent=2) + "\n"}

    def _layer(
        self, compute: Callable, form: dict[str, tf.TensorSpec], weights: list[tf.Variable]
    ) -> dict[str, Any]:
        """The call and the variables that make an object of a SavedModel a trainable layer."""

        @tf.function(autograph=False)
        def call(inputs: Features, training: bool = False) -> dict[str, Any]:
            return compute(inputs, training)

        for training in (False, True):
            call.get_concrete_function(form, training=training)
        # Dropout counts its draws in variables.
        inner = {id(weight) for weight in self._encoder.weights}
        states = [each.value for each in self._encoder.variables if id(each) not in inner]
        return {"__call__": call, "trainable_variables": weights, "variables": [*weights, *states]}

    def _encode(self, inputs: Mapping[str, tf.Tensor], training: bool) -> dict[str, Any]:
        """The encoder's outputs in float32, and `default`."""
        outputs = self._encoder(inputs, training=training)
        outputs = tf.nest.map_structure(lambda each: tf.cast(each, tf.float32), outputs)
        return outputs | {"default": outputs["pooled_output"]}

    def _masked_lm(self, inputs: Features, training: bool) -> dict[str, Any]:
        """The outputs of `_encode` and `mlm_logits`, float32 [batch, positions, vocab_size]."""
        outputs = self._encode(inputs, training)
        places = inputs[_POSITIONS.name]
        vectors = tf.gather(outputs["sequence_output"], places, batch_dims=1)
        table = self._encoder.embeddings.word_embeddings.value
        logits = self._model.masked_lm(tf.reshape(vectors, [-1, vectors.shape[-1]]), table)
        shape = tf.concat([tf.shape(places), tf.shape(logits)[1:]], axis=0)
        return outputs | {"mlm_logits": tf.reshape(logits, shape)}
