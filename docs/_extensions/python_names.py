"""How the reference of Python names links from docstrings, and which arguments its classes show."""

import inspect

import keras
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxRole

import bert_tf

_PUBLIC = {
    f"{thing.__module__}.{name}": f"bert_tf.{name}"
    for name, thing in ((name, getattr(bert_tf, name)) for name in bert_tf.__all__)
}


class NameRole(SphinxRole):
    """What single backticks hold: code, with a link where the reference has that name."""

    def run(self):
        """A reference, and no messages."""
        context = self.env.ref_context
        node = pending_xref(
            "",
            nodes.literal(self.rawtext, self.text),
            refdoc=self.env.docname,
            refdomain="py",
            reftype="obj",
            reftarget=self.text,
            **{f"py:{key}": context.get(f"py:{key}") for key in ("module", "class")},
        )
        return [node], []


def resolve(app, env, node, content):
    """Finds a class that is annotated by the module that defines it under its public name."""
    if node["refdomain"] != "py":
        return None
    target = node["reftarget"]
    if target in _PUBLIC:
        domain = env.domains.python_domain
        return domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", _PUBLIC[target], node, content
        )
    # Other packages, and words in backticks.
    is_ours = target.startswith("bert_tf.") and node["reftype"] != "obj"
    return None if is_ours else content


def show_arguments():
    """Gives classes the signatures of their constructors, which Keras's `__new__` hides."""
    public = [getattr(bert_tf, name) for name in bert_tf.__all__]
    for kind in {base for each in public if inspect.isclass(each) for base in each.__mro__}:
        if kind.__module__.startswith("bert_tf.") and issubclass(kind, keras.Layer):
            signature = inspect.signature(kind.__init__)
            kind.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])


def setup(app):
    """Adds the role, and finds what Sphinx does not."""
    show_arguments()
    app.add_role("name", NameRole())
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
