"""The paper's figure 4."""

from bert_tf.checkpoints.of_run import step_folder


def test_steps_are_compared_as_in_figure_4(house):
    bert = house.pretraining("bert", 9.0)
    runs = [
        house.finetuning("late", bert, {"accuracy": 0.75}),
        house.finetuning("early", step_folder(bert / "checkpoints", 10), {"accuracy": 0.5}),
    ]
    tables = house.page(*runs)
    assert tables["Training steps (figure 4)"][1:] == [
        ["masked LM and next sentence (BERT)", "10", "50.0"],
        ["masked LM and next sentence (BERT)", "20", "75.0"],
    ]
    assert len(tables) == 1


def test_figure_4_counts_the_steps_of_runs_by_epochs_and_drops_no_pre_training(house):
    bert = house.pretraining("bert", 9.0, length="epochs: 3")
    early = step_folder(bert / "checkpoints", 10)
    runs = [
        house.finetuning("late", bert, {"accuracy": 0.75}),
        house.finetuning("early", early, {"accuracy": 0.5}),
        house.finetuning("late_on_top", bert, {"accuracy": 0.8}, bilstm=True),
        house.finetuning("early_on_top", early, {"accuracy": 0.6}, bilstm=True),
    ]
    rows = house.page(*runs)["Training steps (figure 4)"][1:]
    name = "masked LM and next sentence (BERT)"
    assert rows == [
        [name, "10", "50.0"],
        [name, "20", "75.0"],
        [f"{name} + BiLSTM", "10", "60.0"],
        [f"{name} + BiLSTM", "20", "80.0"],
    ]


def test_figure_4_mixes_no_two_pre_trainings(house):
    runs = []
    for name, accuracy in (("bert", 0.5), ("other", 0.6)):
        start = house.pretraining(name, 9.0)
        for step in (10, 20):
            checkpoint = step_folder(start / "checkpoints", step)
            accuracy += 0.01
            runs.append(house.finetuning(f"{name}_{step}", checkpoint, {"accuracy": accuracy}))
    name = "masked LM and next sentence (BERT)"
    assert house.page(*runs)["Training steps (figure 4)"][1:] == [
        [f"{name}: bert", "10", "51.0"],
        [f"{name}: bert", "20", "52.0"],
        [f"{name}: other", "10", "61.0"],
        [f"{name}: other", "20", "62.0"],
    ]
