"""The two fine-tunings that the demo sets beside each other differ in where they start alone."""

import yaml

from bert_tf.programs import demo


def test_whatever_the_pretraining_says_of_the_model_both_say_too():
    pretrained = yaml.safe_load(demo._FINETUNING + demo._INIT)
    from_scratch = yaml.safe_load(demo._FINETUNING)
    assert pretrained.pop("init") == {"checkpoint": "pretraining"}
    assert pretrained == from_scratch
    # What is not said is the checkpoint's where there is one, and a default where there is none.
    assert yaml.safe_load(demo._PRETRAINING)["model"].keys() == from_scratch["model"].keys()
