"""Experiments: the configurations of the paper's tasks, and whole programs on top of the library.

`bert-tf finetune glue/cola` finds `glue/cola.yaml` here. `bert-tf demo` and `bert-tf report` are
two of the programs; the others run as `python -m bert_tf.experiments.NAME`. The library imports
none of them.
"""

from collections.abc import Callable, Sequence

from bert_tf.cli import command


def program(
    name: str,
    doc: str,
    argv: Sequence[str] | None,
    work: Callable[..., object],
    *options: command.Option,
    stopped: str = "stopped; nothing was written",
) -> int:
    """Runs `python -m bert_tf.experiments.NAME`; the options are the arguments of `work`."""
    parser = command.module_parser(f"bert_tf.experiments.{name}", doc, *options)
    return command.run(name, parser, argv, lambda arguments: work(**vars(arguments)), stopped)
