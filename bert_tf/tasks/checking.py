"""`bert-tf convert PATH --check`: what is in a checkpoint, and what bert_tf reads from it."""

import os

from bert_tf.checkpoints import conversion, sentence_transformers, tf_hub
from bert_tf.checkpoints.checkpoint import Checkpoint, listed
from bert_tf.tasks import from_checkpoint
from bert_tf.text import Tokenizer


def findings(path: str | os.PathLike) -> dict[str, str]:
    """What the checkpoint at `path` is, and what would be lost, by the names of printed lines."""
    checkpoint = from_checkpoint.find(path)
    _, report = checkpoint.weights()
    encoder, family = checkpoint.encoder, from_checkpoint.family_at(checkpoint)
    has_vocabulary = checkpoint.read_vocabulary() is not None
    tokenizer = Tokenizer.from_checkpoint(checkpoint) if has_vocabulary else None
    length = f"up to {encoder.max_position_embeddings} tokens"
    head, command = "none", f"bert-tf finetune CONFIG --set init.checkpoint={path}"
    if family is not None:
        cls = family.model_class()
        model = from_checkpoint.built(cls, checkpoint, path, None, {}, tokenizer)
        from_checkpoint.check_head(checkpoint.fill(model, model.labels), model, path)
        head = type(model).__name__
        head += f" of {listed(model.labels)}" if model.labels else ""
        length = from_checkpoint.length_read(model)
        command = f"bert-tf predict {path} --input FILE"
    lost = [f"ignored: {listed(report.ignored)}"] if report.ignored else []
    lost += [f"not there: {listed(report.new)}"] if report.new else []
    return {
        "format": _format(checkpoint),
        "architecture": f"{encoder.model_type}, {encoder.num_hidden_layers} layers, "
        f"{encoder.hidden_size} wide, {encoder.num_attention_heads} heads, "
        f"{encoder.max_position_embeddings} positions",
        "head": head,
        "tokenizer": "no vocabulary, so it reads no texts" if tokenizer is None else _of(tokenizer),
        "length": length,
        "lost": "; ".join((*lost, *report.notes)) or "nothing",
        "next": command,
    }


def _format(checkpoint: Checkpoint) -> str:
    if checkpoint.table is sentence_transformers.TABLE:
        return sentence_transformers.READER
    if (checkpoint.folder / tf_hub.SAVED_MODEL_FILE).is_file():
        return "TF Hub"
    return getattr(conversion.FORMATS[checkpoint.table.format], "READER", "bert_tf")


def _of(tokenizer: Tokenizer) -> str:
    fields = vars(tokenizer.settings) | {"strip_accents": tokenizer.settings.strips_accents}
    said = [f"{tokenizer.vocab_size} pieces"]
    for name, value in fields.items():
        if isinstance(value, tuple):
            said += [f"{name} {listed(value)}"] if value else []
        else:
            said.append(f"{name} {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join(said)
