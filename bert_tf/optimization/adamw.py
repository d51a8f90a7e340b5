"""The Adam that BERT was published with: no bias correction, decoupled weight decay.

Source: `AdamWeightDecayOptimizer` and `create_optimizer` in google-research/bert
`optimization.py`.
"""

import keras
import tensorflow as tf

from bert_tf.optimization.base import BertOptimizer


@keras.saving.register_keras_serializable("bert_tf")
class AdamW(BertOptimizer):
    """m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr (m / (sqrt(v) + eps) + decay w).

    Args: see `BertOptimizer`.
    """

    def update(
        self,
        variable: tf.Variable,
        momentum: tf.Tensor,
        velocity: tf.Tensor,
        decay: float,
        rate: tf.Tensor,
    ) -> tf.Tensor:
        """lr (m / (sqrt(v) + eps) + decay w)."""
        step = momentum / (tf.sqrt(velocity) + self.epsilon)
        if decay:
            step += decay * variable
        return rate * step
