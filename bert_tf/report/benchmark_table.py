"""The table of one benchmark: its runs below the paper's, with what each of them was."""

from collections.abc import Sequence

from bert_tf.report.curves import draw_curves
from bert_tf.report.page import Row, Section
from bert_tf.report.runs import RunFacts, training_parts

# Curves to draw, where a run has logged them.
_CURVES = ("loss", "masked_lm_accuracy", "next_sentence_accuracy")


def _size(facts: RunFacts) -> str:
    encoder = facts.encoder
    return f"{encoder.num_hidden_layers} x {encoder.hidden_size}"


def _length(facts: RunFacts) -> str:
    train = facts.config.train
    if train.steps:
        length = f"{train.steps} steps"
    else:
        length = "1 epoch" if train.epochs == 1 else f"{train.epochs:g} epochs"
    if facts.train_rows is None:
        return length
    return f"{length} {'on' if train.steps else 'of'} {facts.train_rows:,} rows"


# Columns that say what a run was.
_SETTINGS = {
    "layers x width": _size,
    "started from": lambda facts: facts.start,
    "training": _length,
    "batch": lambda facts: str(facts.config.train.batch_size),
    "seeds": lambda facts: str(facts.seeds),
}


def benchmark_section(facts: Sequence[RunFacts]) -> Section:
    """The table of the paper's figures and of these runs, all on one benchmark, and the curves."""
    benchmark = facts[0].benchmark
    metrics = [m for m in benchmark.metrics if any(m in each.metrics for each in facts)]
    elsewhere = f" on {benchmark.stands_for}" if benchmark.stands_for else ""
    rows = [
        Row(
            (
                f"paper, {result.model}{elsewhere} ({result.split})",
                *(f"{result.values[m]:.1f}" if m in result.values else "" for m in metrics),
                *[""] * len(_SETTINGS),
            ),
            quoted=True,
        )
        for result in benchmark.results
    ]
    for each in facts:
        settings = [say_of(each) for say_of in _SETTINGS.values()]
        rows.append(Row((each.name, *map(each.shown, metrics), *settings)))
        if each.ensemble is not None:
            together = [f"{each.ensemble[m]:.1f}" if m in each.ensemble else "" for m in metrics]
            rows.append(Row((f"{each.name}, ensemble", *together, *settings)))
    below = []
    if benchmark.source:
        other = f", measured on {benchmark.stands_for}, not on our data" if elsewhere else ""
        below.append(f"The paper's figures come from its {benchmark.source}{other}.")
    below += training_parts(facts) + _language_models(facts)
    drawn = [
        metric
        for metric in dict.fromkeys((*_CURVES, *metrics))
        if any(metric in curves for each in facts for curves in each.curves.values())
    ]
    picture = draw_curves([(each.name, each.curves) for each in facts], drawn) if drawn else None
    columns = ("", *metrics, *_SETTINGS)
    return Section(benchmark.heading, columns, tuple(rows), tuple(below), picture)


def _language_models(facts: Sequence[RunFacts]) -> list[str]:
    """Which pre-trainings are no masked language models, though their metrics are called so."""
    one_way = [
        each.name
        for each in facts
        if each.config.task == "pretraining" and each.encoder.attention != "bidirectional"
    ]
    if not one_way:
        return []
    return [
        "A masked language model predicts the masked tokens from both sides; a model that reads "
        "in one direction predicts every token from one side. Their masked_lm_accuracy and "
        "perplexity are therefore not comparable. Models that read in one direction: "
        f"{', '.join(one_way)}."
    ]
