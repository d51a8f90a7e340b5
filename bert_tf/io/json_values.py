"""Values of JSON: their kinds in words, and those that NumPy's become."""

from typing import Any

KINDS: dict[object, str] = {
    list: "a list",
    dict: "an object",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def as_json(value: Any) -> Any:
    """A NumPy value or array as the numbers, texts and lists of JSON; strings are UTF-8.

    A float32 becomes the shortest decimal number that means it: 0.1, not 0.10000000149.
    """
    if getattr(value, "ndim", 0):
        return [as_json(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value.dtype == "float32":
        return float(str(value))
    return value.item()
