"""The largest difference from the peers, with the same weights and the same batch.

    python -m benchmarks.parity                # tiny, mini and small shapes
    python -m benchmarks.parity --sizes base

Beside Hugging Face (`BertForPreTraining`; needs torch and transformers, the extra `bench`): every
layer's output, pooled output, both heads' logits, the loss, and all gradients relative to the
largest element of each. Beside Model Garden (`BertEncoderV2`, tf-models-official): every layer's
output and the pooled output. The weights are random, made by the peer and read from the checkpoint
that it writes; for both forms of GELU, both token layouts, and rows that are full, padded, with
holes, and of one token.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import names, reading
from bert_tf.models import Encoder, EncoderConfig, PreTrainer

VOCABULARY = 1000
SEQ_LEN = 48


def main() -> None:
    """Prints one row for each peer, size, activation and layout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["tiny", "mini", "small"])
    sizes = parser.parse_args().sizes
    print(f"{'peer':14}{'size':8}{'gelu':10}{'layout':10}outputs  logits   loss     gradients")
    for size in sizes:
        for activation in ("gelu", "gelu_new"):
            config = EncoderConfig.preset(
                f"bert-{size}-uncased", vocab_size=VOCABULARY, hidden_act=activation
            )
            for peer, compare in (("Hugging Face", hugging_face), ("Model Garden", model_garden)):
                for layout, differences in compare(config).items():
                    cells = "".join(f"{value:<9.1e}" for value in differences)
                    print(f"{peer:14}{size:8}{activation:10}{layout:10}{cells}", flush=True)


def batch() -> dict[str, np.ndarray]:
    """int32 inputs [4, SEQ_LEN] with a full row, a padded one, one with holes, and one token."""
    random = np.random.RandomState(0)
    mask = np.ones((4, SEQ_LEN), np.int32)
    mask[1, SEQ_LEN // 2 :] = 0
    mask[2] = random.rand(SEQ_LEN) < 0.5
    mask[2, 0] = 1
    mask[3, 1:] = 0
    places = [np.flatnonzero(row)[:: max(1, row.sum() // 5)][:5] for row in mask]
    positions = np.stack([np.pad(place, (0, 5 - len(place))) for place in places])
    weights = np.stack([np.arange(5) < len(place) for place in places])
    return {
        # Not id 0: torch gives its padding row no gradient.
        "input_word_ids": random.randint(1, VOCABULARY, mask.shape).astype(np.int32),
        "input_mask": mask,
        "input_type_ids": random.randint(0, 2, mask.shape).astype(np.int32),
        "masked_lm_positions": positions.astype(np.int32),
        "masked_lm_ids": random.randint(1, VOCABULARY, positions.shape).astype(np.int32),
        "masked_lm_weights": weights.astype(np.float32),
        "next_sentence_labels": np.array([0, 1, 1, 0], np.int32),
    }


def hugging_face(config: EncoderConfig) -> dict[str, list[float]]:
    """Layout -> largest differences of outputs, logits, loss and gradients."""
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    fields = {k: v for k, v in config.to_dict().items() if k != "attention"}
    peer = transformers.BertForPreTraining(
        transformers.BertConfig(**fields, attn_implementation="eager")
    ).eval()
    data = {name: torch.tensor(value).long() for name, value in batch().items()}
    mask, weights = data["input_mask"], data["masked_lm_weights"].float()
    bert = peer.bert(
        input_ids=data["input_word_ids"],
        attention_mask=mask,
        token_type_ids=data["input_type_ids"],
        output_hidden_states=True,
    )
    places = data["masked_lm_positions"][..., None].expand(-1, -1, config.hidden_size)
    masked_lm, follows = peer.cls(
        torch.gather(bert.last_hidden_state, 1, places), bert.pooler_output
    )
    nll = torch.nn.functional.cross_entropy(
        masked_lm.flatten(0, 1), data["masked_lm_ids"].flatten(), reduction="none"
    )
    loss = (nll * weights.flatten()).sum() / (weights.sum() + 1e-5)
    loss += torch.nn.functional.cross_entropy(follows, data["next_sentence_labels"])
    loss.backward()
    layers = [(h * mask[..., None]).detach().numpy() for h in bert.hidden_states[1:]]
    layers.append(bert.pooler_output.detach().numpy())
    real = weights.numpy().astype(bool)

    with tempfile.TemporaryDirectory() as folder:
        weights_folder, gradients_folder = Path(folder, "weights"), Path(folder, "gradients")
        peer.save_pretrained(weights_folder)
        with torch.no_grad():
            for parameter in peer.parameters():
                parameter.copy_(parameter.grad)
        # The gradients, written as if they were weights, come back under our names.
        peer.save_pretrained(gradients_folder)
        results = {}
        for layout in ("unpadded", "padded"):
            model, gradients = (PreTrainer(Encoder(config, layout=layout)) for _ in range(2))
            reading.find(weights_folder).fill(model)
            reading.find(gradients_folder).fill(gradients)
            ours = {name: tf.constant(value) for name, value in batch().items()}
            variables = names.weight_names(model)
            with tf.GradientTape() as tape:
                outputs = model(ours)
                our_loss = model.compute_loss(y=ours, y_pred=outputs)
            found = tape.gradient(our_loss, [variable.value for variable in variables.values()])
            expected = names.weight_names(gradients)
            results[layout] = [
                max(map(_difference, _outputs(model.encoder, ours), layers)),
                max(
                    _difference(outputs["masked_lm"].numpy()[real], masked_lm.detach()[real]),
                    _difference(outputs["next_sentence"], follows.detach()),
                ),
                _difference(our_loss, loss.detach()),
                max(
                    _relative(tf.convert_to_tensor(gradient), expected[name])
                    for name, gradient in zip(variables, found, strict=True)
                ),
            ]
    return results


def model_garden(config: EncoderConfig) -> dict[str, list[float]]:
    """Layout -> the largest difference of the outputs."""
    from official.nlp.modeling import networks

    peer = networks.BertEncoderV2(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        max_sequence_length=config.max_position_embeddings,
        type_vocab_size=config.type_vocab_size,
        inner_dim=config.intermediate_size,
        inner_activation=_tanh_gelu if config.hidden_act == "gelu_new" else _erf_gelu,
        norm_first=False,
    )
    ours = {name: tf.constant(value) for name, value in batch().items()}
    theirs = peer({name: ours[name] for name in ("input_word_ids", "input_mask", "input_type_ids")})
    mask = batch()["input_mask"][..., None]
    expected = [layer.numpy() * mask for layer in theirs["encoder_outputs"]]
    expected.append(theirs["pooled_output"].numpy())
    with tempfile.TemporaryDirectory() as folder:
        tf.train.Checkpoint(encoder=peer).write(str(Path(folder, "ckpt")))
        checkpoint = reading.find(folder)
        results = {}
        for layout in ("unpadded", "padded"):
            encoder = Encoder(config, layout=layout)
            checkpoint.fill(encoder)
            results[layout] = [max(map(_difference, _outputs(encoder, ours), expected))]
    return results


# Named functions: Model Garden writes the activation's name into its configuration.
def _erf_gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.gelu(x, approximate=False)


def _tanh_gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.gelu(x, approximate=True)


def _outputs(encoder: Encoder, inputs: dict[str, tf.Tensor]) -> list[tf.Tensor]:
    outputs = encoder(inputs)
    return [*outputs["encoder_outputs"], outputs["pooled_output"]]


def _difference(one: object, other: object) -> float:
    return float(np.abs(np.asarray(one) - np.asarray(other)).max())


def _relative(one: object, other: object) -> float:
    return _difference(one, other) / max(float(np.abs(np.asarray(other)).max()), 1e-30)


if __name__ == "__main__":
    main()
