"""What all sections of a configuration have in common."""

from typing import Any

import pydantic


class Section(pydantic.BaseModel):
    """A section of a file. Its fields are the keys; the text below a field describes it.

    It is immutable, knows no other keys, and converts no value but a whole number to a float and a
    list to a tuple.

    Raises:
        pydantic.ValidationError: an unknown or missing key, or a value that does not fit.
    """

    model_config = pydantic.ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    def is_default(self, key: str) -> bool:
        """Whether a key has its default."""
        return getattr(self, key) == type(self).model_fields[key].default

    @pydantic.model_validator(mode="before")
    @classmethod
    def _of_yaml(cls, values: Any) -> Any:
        if values is None:  # `train:` with nothing below it
            return {}
        if not isinstance(values, dict):
            return values
        return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}

    @pydantic.model_serializer(mode="wrap")
    def _without_nulls(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Keys that are null by default are left out, and sections of nothing else."""
        fields = type(self).model_fields
        return {
            key: value
            for key, value in handler(self).items()
            if value != {} and not (value is None and fields[key].default is None)
        }
