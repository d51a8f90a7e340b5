"""The data of a pre-training, as its configuration names them: text, token shards or TFRecords."""

import json
import os
from pathlib import Path

from bert_tf.config.run import PretrainingRun
from bert_tf.console import Progress, logger
from bert_tf.data import arrow
from bert_tf.data.corpora.corpus import (
    TFDS,
    TFRECORD,
    TOKEN_SHARDS,
    AnyCorpus,
    ArrowCorpus,
    Corpus,
    TfdsCorpus,
)
from bert_tf.data.corpora.shard_data import ShardData, check_rows
from bert_tf.data.corpora.shard_writing import write_token_shards
from bert_tf.data.corpora.token_shards import TokenShards
from bert_tf.data.records.data import RecordData
from bert_tf.errors import UserError
from bert_tf.io.remote import fetched
from bert_tf.text import Tokenizer


def build(config: PretrainingRun, tokenizer: Tokenizer, out: str | os.PathLike) -> TokenShards:
    """Writes the corpus that `config` names as token shards into the folder `out`."""
    corpus = open_corpus(config)
    total = corpus.size // corpus.unit_size + 1
    with Progress("tokenizing", total, unit=corpus.unit) as progress:

        def update() -> None:
            progress.update(min(corpus.position // corpus.unit_size, total - 1), line=True)

        shards = write_token_shards(
            corpus, tokenizer, out, dev_fraction=config.data.dev_fraction, progress=update
        )
        progress.update(total)
    say_counts(shards)
    return shards


def say_counts(shards: TokenShards) -> None:
    """Logs the number of documents, tokens and shards."""
    for part, each in shards.parts.items():
        documents, tokens = (sum(getattr(s, k) for s in each) for k in ("documents", "tokens"))
        counts = f"{documents:,} documents, {tokens:,} tokens, {len(each)} shards"
        logger.info(f"{shards.folder}: {part} {counts}")


def open_corpus(config: PretrainingRun) -> AnyCorpus:
    """The text that `config` names."""
    format = config.data.format
    if format == TFDS:
        return TfdsCorpus(config.data.path, config.data.split)
    if format in arrow.FORMATS:
        split = config.data.split if format == "datasets" else None
        return ArrowCorpus(config.data.path, split)
    if format in (TOKEN_SHARDS, TFRECORD):
        raise UserError(
            f"data.format is {format}, which holds no text to tokenize; set data.path and "
            "data.format to a corpus"
        )
    return Corpus(config.data.path, format)


def open_data(
    config: PretrainingRun,
    tokens: str | os.PathLike,
    tokenizer: Tokenizer,
    attention: str = "bidirectional",
    batch_size: int | None = None,
    max_length: int | None = None,
) -> ShardData | RecordData:
    """The data of one phase; text is tokenized into the folder `tokens`, unless it already was."""
    if config.data.format != TFRECORD:
        return open_shards(config, tokens, tokenizer, attention, batch_size, max_length)
    if attention != "bidirectional":
        raise UserError(
            f"data.format tfrecord cannot be combined with {attention} attention, since its "
            "tokens are already masked; use text or token_shards"
        )
    return RecordData(
        config.data.path,
        batch_size or config.train.batch_size,
        max_length or config.train.max_length,
        tokenizer,
        seed=config.train.seed,
        next_sentence=config.data.next_sentence,
        dev_path=config.data.dev_path,
    )


def shards_folder(config: PretrainingRun, tokens: str | os.PathLike) -> Path:
    """The folder of the token shards: `data.path` if the format is token_shards, else `tokens`."""
    if config.data.format != TOKEN_SHARDS:
        return fetched(tokens)
    if not isinstance(config.data.path, str):
        raise UserError("data.path must be one folder if data.format is token_shards")
    return fetched(config.data.path)


def open_shards(
    config: PretrainingRun,
    tokens: str | os.PathLike,
    tokenizer: Tokenizer,
    attention: str = "bidirectional",
    batch_size: int | None = None,
    max_length: int | None = None,
) -> ShardData:
    """As `open_data`, for text and token shards."""
    folder, max_length = shards_folder(config, tokens), max_length or config.train.max_length
    predictions, next_sentence = config.data.max_predictions_per_seq, config.data.next_sentence
    # This check comes before tokenizing text, which may take hours.
    check_rows(max_length, predictions, next_sentence, attention)
    if config.data.format != TOKEN_SHARDS and not folder.exists():
        build(config, tokenizer, folder)
    data = ShardData(
        folder,
        batch_size or config.train.batch_size,
        max_length,
        predictions,
        seed=config.train.seed,
        next_sentence=next_sentence,
        short_probability=config.data.short_seq_prob,
        rate=config.data.masked_lm_prob,
        whole_word=config.data.whole_word_masking,
        mask_share=config.data.mask_share,
        random_share=config.data.random_share,
        cross_documents=config.data.cross_documents,
        attention=attention,
    )
    if data.vocabulary != tokenizer.vocabulary:
        raise UserError(
            f"{folder} was tokenized with a different vocabulary; run bert-tf pretrain-data again"
        )
    if wrong := tokenizer.settings.first_difference(data.tokenizer):
        raise UserError(
            f"{folder} was tokenized with tokenizer.{wrong} "
            f"{json.dumps(getattr(data.tokenizer, wrong))}; run bert-tf pretrain-data again"
        )
    return data
