"""Writing a service as a SavedModel folder."""

from pathlib import Path

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.files import atomic_path
from export.service import Service, endpoint, traced


def write(service: Service, out: Path) -> Path:
    """Writes `out` with the service's signatures, the attribute `serve` and the assets.

    `assets/vocab.txt` and `assets/labels.txt` are for people and other programs; the graph holds
    its own copies, since TF Serving should not have to look tables up.

    Raises:
        UserError: `out` exists or cannot be written.
    """
    if out.exists():
        raise UserError(f"{out} exists already; remove it or choose another --out")
    signatures = service.signatures()
    module = tf.Module(name="bert_tf")
    module.weights = service.weights
    module.serve = endpoint(signatures["serving_default"])
    with atomic_path(out) as new:
        tf.saved_model.save(
            module,
            str(new),
            signatures={name: traced(signature) for name, signature in signatures.items()},
        )
        for name, lines in (("vocab.txt", service.vocabulary), ("labels.txt", service.labels)):
            if lines:
                (new / "assets" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return out
