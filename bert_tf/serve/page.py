"""The page of the server, on which people ask its models."""

import functools

from bert_tf.templates import COLOURS, TEMPLATES, content_hash


@functools.cache
def page() -> tuple[str, str]:
    """The page, and its Content-Security-Policy, which lets no other script run on it."""
    allowed = {
        f"{kind}-src": content_hash(f"bert_tf/templates/parts.{end}", f"bert_tf/serve/page.{end}")
        for kind, end in (("script", "js"), ("style", "css"))
    }
    allowed |= {"default-src": "'none'", "connect-src": "'self'", "img-src": "data:"}
    allowed |= dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'")
    # Black, the last one, cannot be seen in the dark.
    content = TEMPLATES.get_template("bert_tf/serve/page.html").render(colours=COLOURS[:-1])
    return content, "; ".join(f"{name} {value}" for name, value in allowed.items())
