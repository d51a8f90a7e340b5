"""Runs google-research's data builder as it is, under TensorFlow 2.

    python -m benchmarks.reference_builder PATH/TO/bert --input_file=corpus.txt \
        --output_file=examples.tfrecord --vocab_file=vocab.txt --max_seq_length=128

PATH/TO/bert is a copy of google-research/bert, whose create_pretraining_data.py was written for
TensorFlow 1.11; the flags are its own. Every function that it uses is still there in
`tf.compat.v1`.
"""

import os
import runpy
import sys
from pathlib import Path

SCRIPT = "create_pretraining_data.py"


def main() -> None:
    """Gives the script its own TensorFlow and command line."""
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / SCRIPT).is_file():
        sys.exit(f"name the folder that holds {SCRIPT}: google-research/bert")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    folder = Path(sys.argv[1])
    sys.modules["tensorflow"] = tf.compat.v1
    sys.path.insert(0, str(folder))
    sys.argv = [SCRIPT, *sys.argv[2:]]
    runpy.run_path(str(folder / SCRIPT), run_name="__main__")


if __name__ == "__main__":
    main()
