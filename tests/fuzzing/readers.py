"""The readers of files that users get from others, each with good files to damage."""

import copy
import dataclasses
import hashlib
import io
import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import h5py
import keras
import numpy as np
import pyarrow
import tensorflow as tf
from hypothesis import strategies as st
from pyarrow import feather, parquet

from bert_tf import TextClassifier
from bert_tf.asking.record import RECORD_FILE, Record, to_json
from bert_tf.asking.row_files import read_blocks
from bert_tf.checkpoints import conversion, reading, tensors, tf_files
from bert_tf.config.reading import load_config
from bert_tf.data import arrow, tables
from bert_tf.data.corpora import corpus
from bert_tf.data.corpora.token_shards import MANIFEST, TRAIN, TokenShards
from bert_tf.data.records.data import RecordData
from bert_tf.data.records.files import masked_crc32c
from bert_tf.data.targets import Label, Number
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.litert import metadata
from bert_tf.io.vocabulary import read_vocabulary
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.optimization import AdamW, WarmupLinearDecay
from bert_tf.tasks import keras_files
from bert_tf.tasks.multiple_choice import data as choices
from bert_tf.tasks.question_answering import squad
from bert_tf.tasks.reranking import data as ranking
from bert_tf.tasks.texts import TextData, text_files
from bert_tf.tasks.token_classification import conll
from bert_tf.text import Tokenizer
from tests import tiny
from tests.checkpoints import hostile_hdf5, tiny_models
from tests.data import counting
from tests.export.litert import networks
from tests.fuzzing.damage import damaged, one_damaged

Files = dict[str, bytes]
# The folder, below the one that is read, for the copies of a reader that unpacks.
CACHE = "cache"


@dataclasses.dataclass(frozen=True)
class Reader:
    """One format.

    Attributes:
        good: the files of a folder, by their names.
        damaged: makes them into damaged ones.
        read: reads all that is in the folder.
        unpacks: whether it may write to the folder for temporary files and to `CACHE`, and delete
            there.
    """

    good: Files
    damaged: st.SearchStrategy[Files]
    read: Callable[[Path], Any]
    unpacks: bool = False


def of_file(name: str, content: bytes, words: str, read: Callable[[Path], Any]) -> Reader:
    """A reader of one file; `words` of its format are parted by spaces."""
    files = {name: content}
    pieces = [word.encode() for word in words.split()]
    return Reader(files, one_damaged(files, pieces), lambda folder: read(folder / name))


def readers(scratch: Path) -> dict[str, Reader]:
    """All of them by name; good files that code must write are made in the folder `scratch`."""
    return {
        "yaml": _yaml(),
        "vocabulary": of_file(
            "vocab.txt", "\n".join(tiny.VOCABULARY).encode(), "[CLS] ## [UNK]", read_vocabulary
        ),
        "tfrecord": _records(scratch),
        "token shards": _shards(scratch),
        "safetensors": _safetensors(scratch),
        "Hugging Face": _folder("huggingface_heads/BertForSequenceClassification"),
        "Hugging Face, sharded": _folder("huggingface_heads/sharded"),
        "Hugging Face, HDF5": _hdf5("huggingface_tf/BertForSequenceClassification"),
        "cross-encoder": _folder("cross_encoder/identity"),
        "bert_tf": _native(scratch),
        "TF1": _folder("google_tiny_classifier"),
        "TF1, whole": _named_tensors(scratch),
        "Model Garden": _folder("model_garden_tiny_encoder"),
        "TF Hub": _folder("tf_hub_tiny"),
        ".keras": _keras(scratch),
        ".tflite": _tflite(),
        "record": of_file(
            f"assets/{RECORD_FILE}",
            to_json(Record({"model": "x"}, (8,), "strings", "float32").to_dict()).encode(),
            '{ } [ ] : , "format" 2 true null',
            lambda path: Record.of_saved_model(path.parents[1]),
        ),
        **{f"corpus, {name}": _corpus(name, content) for name, content in _CORPORA.items()},
        "predict": of_file("rows.jsonl", _ROWS, "{ } [ ] : , null true", _read_rows),
        "squad": of_file("dev.json", _SQUAD, '{ } [ ] : , "id" null true 1', _read_squad),
        "conll": of_file("train.txt", _CONLL, "-DOCSTART- O B-x I-x E-x S-x -", conll.read_conll),
        "tsv": of_file("train.tsv", _TSV, "text label", _read_table("tsv")),
        "csv": of_file("train.csv", _CSV, 'text label " "" ,', _read_table("csv")),
        "jsonl": of_file("train.jsonl", _JSON_LINES, "{ } : null [] true", _read_table("jsonl")),
        "GLUE": _glue(),
        "codah": of_file("train.tsv", _CODAH, "0 3 4", lambda p: choices.read_choices(p, "codah")),
        "swag": of_file("train.csv", _SWAG, 'label "', lambda p: choices.read_choices(p, "swag")),
        **{
            f"ranking, {form}": of_file(
                f"train.{form}", content, words, lambda p, f=form: ranking.read_candidates(p, f)
            )
            for form, (content, words) in _RANKING.items()
        },
        "peft": _adapter(),
        "parquet": _table(scratch, "train.parquet", parquet.write_table),
        "arrow": _table(scratch, "train.arrow", feather.write_feather),
    }


_YAML = """\
task: question_answering
data: {path: squad, format: squad, train: train.json}
tokenizer: {vocab: vocab.txt, lower_case: true}
model: {hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2}
train:
  epochs: 2
  batch_size: 32
  learning_rate: [5e-5, 3e-5]
  precision: "bfloat16"
"""
_YAML_WORDS = (
    *("base: run.yaml", "&a", "*a", "!!python/object/apply:os.system [touch x]", "<<: ", "? "),
    *("- ", ": ", "{", "}", "|", ">", "---", "%YAML 1.1", "task: classification", "null", "0x"),
    "train.",
)


def _yaml() -> Reader:
    files = {"run.yaml": _YAML.encode()}
    words = [word.encode() for word in _YAML_WORDS]
    return Reader(files, one_damaged(files, words), lambda f: load_config(f / "run.yaml"))


_CONTEXT = "Ann met Bob in the café at noon. 😀"
_QUESTIONS = [
    {"id": "1", "question": "Whom did Ann meet?", "answers": [{"text": "Bob", "answer_start": 8}]},
    {"id": "2", "question": "When?", "is_impossible": True, "answers": []},
]
_ARTICLE = {"title": "A", "paragraphs": [{"context": _CONTEXT, "qas": _QUESTIONS}]}
_SQUAD = json.dumps({"version": "v2.0", "data": [_ARTICLE]}, ensure_ascii=False).encode()
_CONLL = b"-DOCSTART- -X- O O\n\nAnn NNP I-NP B-PER\nmet VBD I-VP O\n\nOslo NNP I-NP B-LOC\n"
_TSV = "text\tlabel\na good film\tgood\na “bad” film\tbad\n".encode()
_CSV = b'text,label\n"a good, film",good\n"a ""bad"" film",bad\n'
_JSON_LINES = b'{"text": "a good film", "label": "good"}\n{"text": "no\\u00e9", "label": 1}\n'
_GLUE = {
    "cola": b"gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tCat the sat.\n",
    "sst2": b"sentence\tlabel\na fine film\t1\na poor one\t0\n",
    "mrpc": b"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tAn old dog\tA dog\n",
    "qqp": b"id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWho?\tWhom?\t1\n",
    "stsb": b"index\tsentence1\tsentence2\tscore\n0\tA dog\tA cat\t2.500\n",
    "mnli": b"index\tsentence1\tsentence2\tgold_label\n0\tA dog\tA cat\tneutral\n1\ta\tb\t-\n",
}
_CODAH = b"i\tThe dog\tbarks\tflies\treads\tcooks\t0\no\tI am\ta\tb\tc\td\t3\n"
_SWAG = (
    b"sent1,sent2,ending0,ending1,ending2,ending3,label\n"
    b'"A man, tall",He,"sits, then",runs,eats,sleeps,1\n'
)


_RANKING = {
    "jsonl": (
        b'{"query": "who", "passages": ["a", "b"], "relevances": [1, 0.5]}\n'
        b'{"query": "who", "positive": "a", "negatives": ["c\\u00e9"]}\n',
        '{ } [ ] : , "passage" "relevance" null true 1e999',
    ),
    "tsv": (b"query\tpassage\trelevance\nwho\ta\t1\nwho\tb\t0.5\n", "query nan inf 1"),
    "triples": (b"who\ta\tb\nwhat\tc\td\n", "who"),
}
_CORPORA = {
    "sentence_per_line": "One sentence .\nOne more – it is “long”.\n\nA text.\n".encode(),
    "document_per_file": "It began. It\r\nended, as Mr. Bell said: “Well!” No…".encode(),
    "jsonl": b'{"text": "One. Two."}\n\n{"id": 3, "text": "caf\\u00e9"}\n',
    "wikitext": b" \n = First = \n \n It began @-@ well . \n \n = = Part = = \n \n End . \n",
}
_ROWS = b'{"context": "He", "choices": ["ran", "caf\\u00e9"]}\n\n{"context": "a", "choices": []}\n'


def _corpus(file_format: str, content: bytes) -> Reader:
    def read(path: Path) -> None:
        for document in corpus.Corpus(path, file_format):
            "".join(document).encode()

    return of_file("corpus.txt", content, "= . \u2028 @-@ \ufeff \0 \x1f null", read)


def _read_rows(path: Path) -> list:
    return list(read_blocks(str(path), {"context": 1, "choices": 2}))


def _read_squad(path: Path) -> list:
    contexts, targets = (rows := squad.read_squad(path)).column("context"), rows.targets or ()
    pairs = zip(targets, contexts, strict=False)
    return [squad.answer_bytes(answers, context) for answers, context in pairs if answers]


def _read_table(file_format: str) -> Callable[[Path], list]:
    return lambda path: list(tables.read_table(path, file_format, ["text"], ["label"]))


def _glue() -> Reader:
    files = {f"{name}.tsv": content for name, content in _GLUE.items()}

    def read(folder: Path) -> None:
        for name in _GLUE:
            is_regression, data = name == "stsb", TextData(path=str(folder), format=name)
            target = Number() if is_regression else Label()
            rows = text_files.read(folder / f"{name}.tsv", data, target)
            if rows.targets is not None:
                learned = target if is_regression else Label(target.found_in(rows))
                learned.numbers(rows)

    return Reader(files, one_damaged(files, [b"label", b"sentence", b"sentence1", b"-"]), read)


_NUMPY = (b"|O", b"<f8", b"'shape': (9999999999,)", b"True", b"__reduce__", b"<M8[us]")


def _records(scratch: Path) -> Reader:
    """Damaged files, and records that are damaged but have the right checksums."""
    path = next((tiny_models.FIXTURES / "google_tfrecords").glob("*tfrecord*"))
    folder = scratch / "records"
    folder.mkdir()
    vocabulary = tiny.write_vocabulary(folder)
    tokenizer_ = Tokenizer(vocabulary)
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    record = content[12 : 12 + length]
    max_length = len(
        tf.train.Example.FromString(record).features.feature["input_ids"].int64_list.value
    )

    def read(folder: Path) -> None:
        data = RecordData(folder / "a.tfrecord", 1, max_length, tokenizer_, next_sentence=False)
        with data.explained_errors():
            for _ in data.dataset().take(1):
                pass

    whole = damaged(record, [b"input_ids", b"masked_lm_ids", b"\x0a", b"\x1a"])
    framed = st.lists(whole, min_size=1, max_size=2).map(
        lambda records: {"a.tfrecord": b"".join(map(_framed, records))}
    )
    files = {"a.tfrecord": content}
    return Reader(files, one_damaged(files) | framed, read)


def _framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, record)]
    return length + sums[0] + record + sums[1]


def _shards(scratch: Path) -> Reader:
    """Damaged files, and damaged arrays whose size and checksum are right in the manifest."""
    counting.shards(scratch / "shards", [[3, 4], [5]], shard_tokens=100)
    files = _files_in(scratch / "shards")
    manifest = json.loads(files[MANIFEST])

    def told(name: str, content: bytes) -> Files:
        entry = copy.deepcopy(manifest)
        for array, file in entry[TRAIN][0]["files"].items():
            if name.endswith(f".{array}.npy"):
                file |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        return {**files, name: content, MANIFEST: json.dumps(entry).encode()}

    arrays = [name for name in files if name.endswith(".npy")]
    lying = st.sampled_from(arrays).flatmap(
        lambda name: damaged(files[name], _NUMPY).map(lambda content: told(name, content))
    )

    def read(folder: Path) -> None:
        shards = TokenShards(folder)
        for shard in shards.parts[TRAIN]:
            tokens, _ = shards.load(shard)
            tokens.sum()

    return Reader(files, one_damaged(files, [b"null", b"[]", b"{}", b'"files"']) | lying, read)


def _safetensors(scratch: Path) -> Reader:
    """Damaged files, and headers that are damaged but have the right length."""
    path = scratch / "good.safetensors"
    tensors.save(path, {"a": np.ones([2, 3], np.float32), "b": np.arange(4)})
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header, numbers = content[8 : 8 + length], content[8 + length :]
    words = [b'"F64"', b'"BOOL"', b"data_offsets", b"shape", b"[]", b"__metadata__", b"1e3", b"{}"]
    lying = damaged(header, words).map(
        lambda new: {"a.safetensors": struct.pack("<Q", len(new)) + new + numbers}
    )
    files = {"a.safetensors": content}

    def read(folder: Path) -> None:
        found = tensors.open_file(folder / "a.safetensors")
        for name in found.shapes:
            found.read(name)

    return Reader(files, one_damaged(files) | lying, read)


def _named_tensors(scratch: Path) -> Reader:
    """Checkpoints of TensorFlow that are sound, but whose tensors are others."""
    fixture = tiny_models.FIXTURES / "google_tiny_classifier"
    opened = tf_files.open_prefix(fixture / "bert_model.ckpt")
    arrays = {name: opened.read(name) for name in opened.shapes}
    shapes = st.lists(st.integers(0, 9), max_size=3)
    dtypes = st.sampled_from(["float32", "float64", "int8", "bool", "complex64", "float16"])
    other = st.tuples(shapes, dtypes).map(lambda form: np.zeros(*form)) | st.just(
        np.array([b"text"])
    )
    changes = st.dictionaries(st.sampled_from(sorted(arrays)), other | st.none(), max_size=3)
    strangers = st.dictionaries(st.text(max_size=8), other, max_size=2)

    def written(change: tuple[dict, dict]) -> Files:
        kept = {name: array for name, array in {**arrays, **change[0]}.items() if array is not None}
        kept |= {name: array for name, array in change[1].items() if name.isprintable() and name}
        folder = Path(tempfile.mkdtemp(dir=scratch))
        if kept:
            tf_files.write_named(folder / "bert_model.ckpt", kept)
        found = _files_in(folder)
        shutil.rmtree(folder)
        return found | {"bert_config.json": (fixture / "bert_config.json").read_bytes()}

    made = st.tuples(changes, strangers).map(written)
    return Reader(written(({}, {})), made, read_checkpoint)


def _checkpoint(files: Files) -> Reader:
    words = [b'"hidden_size"', b'"weight_map"', b'"bert_tf"', b"null", b"true", b"[]", b"{}"]
    return Reader(files, one_damaged(files, words), read_checkpoint)


def _folder(fixture: str) -> Reader:
    return _checkpoint(_files_in(tiny_models.FIXTURES / fixture))


def _adapter() -> Reader:
    name = "BertForSequenceClassification"
    model = TextClassifier.from_checkpoint(tiny_models.FIXTURES / "huggingface_heads" / name)
    files = _files_in(tiny_models.FIXTURES / "peft" / name)
    words = [b'{ "r": 2 }', b'"LORA"', b"null", b"1e999", b'"alpha_pattern"', b"lora_A"]
    return Reader(files, one_damaged(files, words), model.load_adapter)


def _table(scratch: Path, name: str, write: Callable[[pyarrow.Table, str], None]) -> Reader:
    """Damaged files of Arrow, which `datasets` copies to its cache."""
    columns = {"text": ["a good film", "caf\u00e9", None], "label": ["good", "bad", "good"]}
    write(pyarrow.table(columns), str(scratch / name))

    def read(folder: Path) -> None:
        datasets.config.HF_DATASETS_CACHE = folder / CACHE
        table = arrow.read(folder / name)
        table.check_texts(["text"])
        list(table.rows(table.names))

    words = [b"PAR1", b"ARROW1", b"text", b"\xff\xff\xff\xff", b"\x15", b"\x7f\xff\xff\xff"]
    files = {name: (scratch / name).read_bytes()}
    return Reader(files, one_damaged(files, words), read, unpacks=True)


_HDF5_SIGNATURES = [b"TREE", b"HEAP", b"SNOD", b"OHDR", b"\x89HDF"]


def _hdf5(fixture: str) -> Reader:
    """Damaged files, and sound ones of hostile weights."""
    files, name = _files_in(tiny_models.FIXTURES / fixture), "tf_model.h5"
    weights = st.tuples(st.integers(0, 2**16), st.sampled_from([*hostile_hdf5.CHANGES]))
    hostile = weights.map(lambda each: _changed_weights(files[name], *each))
    cut = damaged(files[name], _HDF5_SIGNATURES)
    made = (hostile | cut).map(lambda content: {**files, name: content})
    return Reader(files, made | one_damaged(files, _HDF5_SIGNATURES), read_checkpoint)


def _native(scratch: Path) -> Reader:
    vocabulary = Tokenizer(tiny_models.PIECES)
    conversion.save(tiny_models.make("classifier"), scratch / "native", "bert_tf", vocabulary)
    return _checkpoint(_files_in(scratch / "native"))


_KERAS = "model.keras"
_CONFIG, _WEIGHTS, _VOCABULARY = "config.json", "model.weights.h5", "assets/vocab.txt"


def _node(class_name: str, module: Any, config: Any, registered: Any = None, **more: Any) -> dict:
    """The JSON from which Keras makes an object."""
    names = {"module": module, "class_name": class_name, "registered_name": registered}
    return names | {"config": config} | more


_ENCODER = {"vocab_size": 10**9, "hidden_size": 10**6, "num_hidden_layers": 1}
# Values that may replace any value of a configuration.
_HOSTILE = (
    *(None, True, 0, -1, 2, 0.5, 10**9, 10**400, 1e308, float("nan"), "", "x", "é", "a/b"),
    *("../../etc/passwd", "/etc/passwd", "file:///etc/passwd"),
    *("mixed_float16", "int8", "os.system"),
    *([], {}, [[]], ["a"], [1], [None], {"a": 1}, {"class_name": "x"}, {"config": {}}),
    _node("system", "os", {"command": "touch /tmp/x"}),
    _node("function", "os", "system", "system"),
    _node("function", "builtins", "eval", "eval"),
    _node("function", "builtins", "mse", "mse"),
    _node("function", "keras.ops", "ones", "ones"),
    _node("function", "keras.utils", "get_file", "get_file"),
    _node("eval", "builtins", {"source": "1"}),
    _node("Popen", "subprocess", {"args": "true"}),
    _node("Path", "pathlib", {}),
    _node("__lambda__", "builtins", {"value": "4wAAAA==", "defaults": None, "closure": None}),
    _node("Lambda", "keras.layers", {"function": _node("__lambda__", "builtins", {"value": "4w"})}),
    _node("TFSMLayer", "keras.layers", {"filepath": "/etc", "call_endpoint": "serve"}),
    _node("StringLookup", "keras.layers", {"vocabulary": "/etc/passwd"}),
    _node("Dense", "keras.layers", {"units": 10**6}, build_config={"input_shape": [1, 10**6]}),
    _node("Dense", "keras.src.layers.core.dense", {"units": 1}),
    _node("MeanIoU", "keras.metrics", {"num_classes": 10**5}),
    _node("AUC", "keras.metrics", {"num_thresholds": 10**9}),
    _node("AUC", "keras.metrics", {"num_thresholds": 50}),
    _node("Adam", "keras.optimizers", {"learning_rate": 1e-3}),
    _node("__tensor__", "builtins", {"value": [[1.0]], "dtype": "float32"}),
    _node("__numpy__", "builtins", {"value": [1], "dtype": "O"}),
    _node("__typespec__", "builtins", [[1]], spec_name="TensorSpec"),
    _node("__keras_tensor__", "builtins", {"shape": [10**9], "dtype": "int8"}),
    _node("DTypePolicy", "keras", {"name": "float64"}),
    _node("DTypePolicy", "keras", {"name": {}}),
    _node("Encoder", "bert_tf.encoder.encoder", {"config": _ENCODER}, "bert_tf>Encoder"),
    _node("__tensor__", "x", {"config": _ENCODER}, "bert_tf>Encoder"),
    _node("AdamW", "x", {"exclude_from_weight_decay": ["(\\w+)+!"]}, "bert_tf>AdamW"),
)
_KEYS = (
    *("compile_config", "build_config", "shared_object_id", "registered_name", "class_name"),
    *("module", "config", "labels", "features", "lstm_units", "format", "vocabulary", "tokenizer"),
    *("activity_regularizer", "autocast", "input_shape", "batch_size", "quantization_config"),
)
# Names of files inside the archive.
_STRANGERS = (
    *("assets/../../../x", "/tmp/x", "assets/x", "assets/", "x", "..", "C:\\x", "assets/..\\..\\x"),
    *("model.weights.npz", "variables.h5", "assets/vocab.txt/x", "assets/encoder/vocab.txt"),
)


def _keras(scratch: Path) -> Reader:
    """Damaged archives, and sound ones of damaged files, hostile configurations and weights."""
    tokenizer_ = Tokenizer(tiny_models.PIECES)
    sizes = {"hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1}
    sizes |= {"intermediate_size": 2, "max_position_embeddings": 7}
    config = EncoderConfig(vocab_size=len(tiny_models.PIECES), **sizes)
    model = TextClassifier(Encoder(config), tokenizer_, tiny_models.LABELS)
    model.compile(AdamW(WarmupLinearDecay(1e-3, 4, 1)), metrics=["accuracy"])
    model.save(scratch / _KERAS)
    with zipfile.ZipFile(scratch / _KERAS) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}

    def one(name: str, content: st.SearchStrategy[bytes]) -> st.SearchStrategy[Files]:
        return content.map(lambda each: {_KERAS: _zipped({**entries, name: each})})

    def with_files(change: dict[str, bytes | None], compression: int) -> Files:
        kept = {name: each for name, each in {**entries, **change}.items() if each is not None}
        return {_KERAS: _zipped(kept, compression)}

    files = {_KERAS: (scratch / _KERAS).read_bytes()}
    edits = st.tuples(
        st.integers(0, 2**16), st.sampled_from(_HOSTILE), st.none() | st.sampled_from(_KEYS)
    )
    words = [b'"config"', b'"class_name"', b'"__lambda__"', b'"os"', b"null", b"[]", b"{}", b'"a"']
    signatures = [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"config.json", b"assets/../x"]
    hostile = st.lists(edits, min_size=1, max_size=3).map(
        lambda each: _edited_json(entries[_CONFIG], each)
    )
    other_files = st.dictionaries(
        st.sampled_from([*_STRANGERS, *entries]),
        st.none() | st.binary(max_size=9) | st.just(bytes(2**20)),
        min_size=1,
        max_size=2,
    )
    weights = st.tuples(st.integers(0, 2**16), st.sampled_from([*hostile_hdf5.CHANGES]))
    made = st.one_of(
        one_damaged(files, signatures),
        one(_CONFIG, damaged(entries[_CONFIG], words)),
        *[one(_CONFIG, hostile)] * 4,
        one(_WEIGHTS, damaged(entries[_WEIGHTS], _HDF5_SIGNATURES)),
        one(_WEIGHTS, weights.map(lambda each: _changed_weights(entries[_WEIGHTS], *each))),
        one(_VOCABULARY, damaged(entries[_VOCABULARY], [b"[UNK]", b"##", b"\n\n"])),
        st.builds(with_files, other_files, st.sampled_from([0, 8])),
    )

    def read(folder: Path) -> None:
        # Keras keeps references to every model until its session is cleared.
        keras.backend.clear_session(free_memory=False)
        found = keras_files.read(folder / _KERAS)
        assert isinstance(found, EncoderModel | Encoder), found
        found.get_config()

    return Reader(files, made, read, unpacks=True)


def _tflite() -> Reader:
    """Damaged files, and files of damaged models and settings with the right SHA-256."""
    name, texts = "model.tflite", {"vocab.txt": "cat\n"}
    bare = networks.converted(networks.Echo())
    settings = b'{"class": "TextClassifier", "labels": ["bad", "good"], "format": 1}'
    entries = {"BERT_TF": settings, "TFLITE_METADATA": b"\0" * 40}
    model = metadata._with_entries(bare, entries)
    files = {name: networks.described(bare, settings={"labels": ["bad", "good"]})}
    archived = [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"sha256", b"vocab.txt"]
    # Offsets and lengths, as a flatbuffer has them.
    numbers = [(2**bits - 1).to_bytes(4, "little") for bits in (0, 2, 8, 16, 24, 31, 32)]
    known = [b"TFL3", b"BERT_TF", b"TFLITE_METADATA", *numbers]
    words = [b'"format"', b"{", b"}", b"[", b"2", b"null"]

    def whole(content: bytes) -> Files:
        return {name: metadata._with_files(content, texts)}

    made = st.one_of(
        one_damaged(files, archived + known),
        damaged(model, known).map(whole),
        damaged(settings, words).map(
            lambda each: whole(metadata._with_entries(bare, {"BERT_TF": each}))
        ),
    )
    return Reader(files, made, lambda folder: metadata.read(folder / name))


def _zipped(entries: Files, compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _edited_json(content: bytes, edits: list[tuple[int, Any, str | None]]) -> bytes:
    """JSON with values somewhere inside replaced, or added under a key."""
    root = [json.loads(content)]
    for place, value, key in edits:
        places = [
            (inside, name)
            for inside in _containers(root)
            for name in (range(len(inside)) if isinstance(inside, list) else inside)
        ]
        inside, name = places[place % len(places)]
        if key is not None and isinstance(inside, dict):
            name = key
        inside[name] = copy.deepcopy(value)
    return json.dumps(root[0] if root else None).encode()


def _containers(value: Any) -> list:
    if not isinstance(value, dict | list):
        return []
    inside = value.values() if isinstance(value, dict) else value
    return [value, *(found for each in inside for found in _containers(each))]


def _changed_weights(content: bytes, place: int, change: Callable) -> bytes:
    """Weights of which one is something else."""
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)
        name = sorted(names)[place % len(names)]
        del file[name]
        change(file, name)
    return buffer.getvalue()


def _files_in(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "expected.npz"
    }


def read_checkpoint(folder: Path) -> None:
    """All tensors that a model would be given, and the tokenizer."""
    checkpoint = reading.find(folder)
    for name in checkpoint.tensors.shapes:
        checkpoint.tensors.read(name)
    if (folder / "vocab.txt").exists():
        Tokenizer.from_checkpoint(folder)
