"""SavedModels in TF Hub's form as layers of Keras 3, with which `hub.KerasLayer` does not work.

Source of the form: tensorflow.org/hub/reusable_saved_models and, for texts,
tensorflow.org/hub/common_saved_model_apis/text.
"""

import inspect
import os
import shutil
import tempfile
from typing import Any

import keras
import tensorflow as tf

from bert_tf.checkpoints import download
from bert_tf.compat import in_safe_mode, put_variable
from bert_tf.errors import UserError
from bert_tf.io.remote import fetched, is_remote


@keras.saving.register_keras_serializable("bert_tf")
class HubLayer(keras.layers.Layer):
    """A preprocessor or an encoder in TF Hub's form, from `bert-tf export --kind hub` or elsewhere.

    A preprocessor takes string [batch] and gives `input_word_ids`, `input_mask` and
    `input_type_ids`, int32 [batch, seq_len]. An encoder takes these and gives `pooled_output` and
    `default`, float32 [batch, hidden], `sequence_output`, float32 [batch, seq_len, hidden], and
    `encoder_outputs`, a list of such. Older encoders keep their own inputs and outputs.

    A model's `.keras` file holds the SavedModel and the trained weights. A SavedModel is a program,
    so `keras.saving.load_model` opens the file only with `safe_mode=False`.

    Args:
        folder: the SavedModel, or "kaggle://owner/model/framework/variation".
        trainable: whether its variables are trained, and its dropout is active in training.
        output_key: the one output to return, such as "pooled_output"; None returns all of them.
        form: the description from `get_config` of a SavedModel that is loaded later.
        **kwargs: as for any layer.

    Attributes:
        resolved_object: the loaded SavedModel, with its functions such as `tokenize` and
            `bert_pack_inputs`.

    Raises:
        UserError: there is no SavedModel at `folder`, or it is not of this form.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        trainable: bool = True,
        output_key: str | None = None,
        form: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_jit = False
        self.output_key = output_key
        self.resolved_object: Any = None
        self._folder = os.fspath(fetched(folder) if is_remote(folder) else folder)
        self._form = form
        if form is None:
            if download.is_address(folder):
                self._folder = str(download.fetch(self._folder))
            variables = self._opened()
        else:
            variables = [(tf.zeros(*tensor), learns) for *tensor, learns in form["variables"]]
        # The SavedModel's own variables, so that an optimizer of Keras changes them.
        self._held = [
            keras.Variable(value, trainable=learns, dtype=value.dtype.name, name=f"variable_{n}")
            for n, (value, learns) in enumerate(variables)
        ]
        self.trainable = trainable  # set here, so that it applies to the variables too
        outputs = self._form["outputs"]
        if output_key is not None and not (isinstance(outputs, dict) and output_key in outputs):
            raise UserError(f"{folder} has no output {output_key!r}; its outputs are {[*outputs]}")
        self.built = True

    def _opened(self) -> list[tuple[tf.Variable, bool]]:
        """Loads the SavedModel; returns its variables, and whether they are trained."""
        import tensorflow_text  # noqa: F401  # its operations

        if not tf.saved_model.contains_saved_model(self._folder):
            raise UserError(f"{self._folder} is not the folder of a SavedModel; give one")
        loaded = tf.saved_model.load(self._folder)
        if not (callable(loaded) and getattr(loaded.__call__, "concrete_functions", None)):
            raise UserError(
                f"{self._folder} cannot be called, as a SavedModel of TF Hub's form for TensorFlow "
                "2 can; give a preprocessor or an encoder, such as bert-tf export --kind hub writes"
            )
        self.resolved_object = loaded
        trained = {id(each) for each in getattr(loaded, "trainable_variables", ())}
        variables = [(each, id(each) in trained) for each in getattr(loaded, "variables", ())]
        self._form = {
            "variables": [[[*v.shape], v.dtype.name, learns] for v, learns in variables],
            "outputs": _described(loaded.__call__.concrete_functions[0].structured_outputs),
        }
        return variables

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Keras's `__call__`, which takes tensors; a list of texts becomes a tensor."""
        if isinstance(inputs, list) and all(isinstance(each, str) for each in inputs):
            inputs = tf.constant(inputs, tf.string)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = False) -> Any:
        if self.resolved_object is None:
            raise UserError(
                "this HubLayer was made from its configuration; load the whole .keras file instead"
            )
        inputs = tf.nest.map_structure(_as_saved, inputs)
        options = {}
        if "training" in inspect.signature(self.resolved_object.__call__).parameters:
            options["training"] = bool(training and self.trainable)
        outputs = self.resolved_object(inputs, **options)
        for loss in getattr(self.resolved_object, "regularization_losses", ()):
            self.add_loss(loss())
        return outputs if self.output_key is None else outputs[self.output_key]

    def compute_output_spec(self, inputs: Any, training: bool | None = False) -> Any:
        """The shapes and dtypes that the SavedModel states for its outputs."""
        outputs = self._form["outputs"]
        return _tensors(outputs if self.output_key is None else outputs[self.output_key])

    def save_assets(self, folder: str) -> None:
        if not os.path.isdir(self._folder):
            raise UserError(f"{self._folder} is gone; restore it, since it goes into the file")
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)

    def load_assets(self, folder: str) -> None:
        """Loads the SavedModel of a `.keras` file; the weights are loaded already."""
        # Keras deletes the folder afterwards.
        self._copy = tempfile.TemporaryDirectory(prefix="bert_tf_hub_layer_")
        self._folder = shutil.copytree(folder, self._copy.name, dirs_exist_ok=True)
        for holder, (variable, _) in zip(self._held, self._opened(), strict=True):
            put_variable(holder, variable)

    def get_config(self) -> dict[str, Any]:
        own = {"folder": self._folder, "output_key": self.output_key, "form": self._form}
        return super().get_config() | own

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "HubLayer":
        """The layer that `get_config` described; `load_assets` loads the SavedModel of a file."""
        if in_safe_mode():
            raise UserError(
                "the model has a HubLayer, whose SavedModel is a program; if you trust where it "
                "comes from, load it with keras.saving.load_model(path, safe_mode=False)"
            )
        # Without a file, as in `keras.models.clone_model`, the SavedModel is still in its folder.
        return cls(**config if in_safe_mode() is False else config | {"form": None})


def _as_saved(value: Any) -> tf.Tensor:
    """Texts unchanged, and ids as int32, which the signatures require."""
    value = tf.convert_to_tensor(value)
    return value if value.dtype == tf.string else tf.cast(value, tf.int32)


def _described(outputs: Any) -> Any:
    """The specifications of outputs as plain data for JSON."""
    if isinstance(outputs, dict):
        return {name: _described(each) for name, each in outputs.items()}
    if isinstance(outputs, list | tuple):
        return [_described(each) for each in outputs]
    return {"shape": outputs.shape.as_list(), "dtype": outputs.dtype.name}


def _tensors(described: Any) -> Any:
    """Keras's symbolic tensors for a description from `_described`."""
    if isinstance(described, list):
        return [_tensors(each) for each in described]
    if not isinstance(described.get("dtype"), str):
        return {name: _tensors(each) for name, each in described.items()}
    return keras.KerasTensor(described["shape"], dtype=described["dtype"])
