"""The page on configuration has every key, with the default that it has."""

import re
from pathlib import Path

import pytest

from bert_tf.config import data, distillation, model, train, yaml_files
from bert_tf.tasks.classification.config import ClassificationData
from bert_tf.tasks.embedding.config import EmbedderModel, LossConfig
from bert_tf.tasks.multi_label_classification.config import MultiLabelData
from bert_tf.tasks.question_answering.config import QuestionAnsweringData
from bert_tf.tasks.reranking.config import RankingLossConfig, RankingModel, RerankingData
from bert_tf.tasks.texts.config import TextData
from bert_tf.tasks.token_classification.config import TaggerModel, TokenClassificationData

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
# The tables in the order of the page, and the class of which each has the keys.
TABLES = (
    train.TrainConfig,
    train.PretrainingTrain,
    train.FinetuningTrain,
    model.TokenizerConfig,
    model.ModelConfig,
    TaggerModel,
    model.InitConfig,
    distillation.DistillationConfig,
    distillation.DistillationLosses,
    data.FinetuningData,
    TextData,
    ClassificationData,
    MultiLabelData,
    QuestionAnsweringData,
    TokenClassificationData,
    RerankingData,
    RankingModel,
    RankingLossConfig,
    EmbedderModel,
    LossConfig,
    data.PretrainingData,
)


def tables() -> list[dict[str, str]]:
    """The keys of each table with their defaults, as they are written."""
    found = re.split(r"\|---\|---\|---\|\n", PAGE.read_text())[1:]
    rows = [re.findall(r"^\| `(\w+)` \| (.*?) ?\|", each.split("\n\n")[0], re.M) for each in found]
    return [dict(each) for each in rows]


@pytest.mark.parametrize("kind", TABLES)
def test_every_key_is_told_with_its_default(kind, tmp_path):
    own = {name: each for name, each in kind.model_fields.items() if name in kind.__annotations__}
    told = tables()[TABLES.index(kind)]
    assert list(told) == list(own)
    for name, field in own.items():
        if field.is_required():
            assert told[name] == ""
        else:
            file = tmp_path / "one.yaml"
            file.write_text(f"value: {told[name]}\n")
            assert yaml_files.read(file).values["value"] == field.default


def test_there_is_a_table_for_each_class_and_no_other():
    assert len(tables()) == len(TABLES)
