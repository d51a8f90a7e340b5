"""Writing a service as a SavedModel folder."""

from pathlib import Path

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.files import atomic_path
from export.service import Service


def write(service: Service, out: Path) -> Path:
    """Writes `out` with the signature `serving_default`, the attribute `serve` and the assets.

    `assets/vocab.txt` and `assets/labels.txt` are for people and other programs; the graph holds
    its own copies, since TF Serving should not have to look tables up.

    Raises:
        UserError: `out` exists or cannot be written.
    """
    if out.exists():
        raise UserError(f"{out} exists already; remove it or choose another --out")
    module = tf.Module(name="bert_tf")
    module.weights = service.weights
    module.serve = service.endpoint()
    with atomic_path(out) as new:
        tf.saved_model.save(module, str(new), signatures={"serving_default": service.signature()})
        for name, lines in (("vocab.txt", service.vocabulary), ("labels.txt", service.labels)):
            if lines:
                (new / "assets" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return out
