"""The kinds of values that keys have."""

from typing import Annotated

from bert_tf.config.typed import PATH, Above, AtLeast, Between

# What a configuration calls a precision -> Keras's dtype policy.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}

FilePath = Annotated[str, PATH]
Count = Annotated[int, AtLeast(1)]
Share = Annotated[float, Between(0, 1)]
Positive = Annotated[float, Above(0)]
