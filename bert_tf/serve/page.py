"""The page of the server, on which people ask its models."""

import base64
import functools
import hashlib

from bert_tf.templates import TEMPLATES


@functools.cache
def page() -> tuple[str, str]:
    """The page, and its Content-Security-Policy, which lets no other script run on it."""
    script, style = (
        TEMPLATES.get_template(f"bert_tf/serve/{name}").render() for name in ("page.js", "page.css")
    )
    content = TEMPLATES.get_template("bert_tf/serve/page.html").render(script=script, style=style)
    allowed = " ".join(
        f"{kind}-src 'sha256-{_digest(text)}';"
        for kind, text in (("script", script), ("style", style))
    )
    return content, f"default-src 'none'; connect-src 'self'; base-uri 'none'; {allowed}"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
