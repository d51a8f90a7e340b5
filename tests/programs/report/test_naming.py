"""Folders are called by as little as tells them apart."""

from bert_tf.programs.report.paper import distinct_names


def test_a_name_that_is_there_once_stands_alone():
    assert distinct_names(["runs/bert", "runs/left"]) == ["bert", "left"]


def test_folders_of_one_name_are_told_apart_by_those_above():
    folders = ["a/sst2/bert", "b/sst2/bert", "b/wnut17/bert", "b/tuned"]
    assert distinct_names(folders) == ["a/sst2/bert", "b/sst2/bert", "wnut17/bert", "tuned"]


def test_what_is_at_the_root_is_told_from_what_is_below_it():
    assert distinct_names(["/bert", "/runs/bert"]) == ["/bert", "runs/bert"]


def test_one_folder_given_twice_keeps_its_name():
    assert distinct_names(["runs/bert", "runs/../runs/bert/"]) == ["bert", "bert"]
