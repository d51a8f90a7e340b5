"""Pictures of a masked language model: what an encoder shows, and what fills the gaps."""

import numpy as np
from markupsafe import Markup

from bert_tf.asking.row_files import Row, text_of
from bert_tf.interpret import charts
from bert_tf.interpret.importance import Inputs
from bert_tf.interpret.pictures import EncoderPictures
from bert_tf.interpret.subject import Subject
from bert_tf.text import Preprocessor

_SHOWN = 10  # pieces that are shown for each gap


class GapPictures(EncoderPictures):
    """Pictures of a `MaskedLM`; a text may have gaps, or none."""

    def __init__(self, subject: Subject):
        super().__init__(subject)
        tokenizer = subject.tokenizer
        keeping = tokenizer.with_settings(special_tokens="whole")
        self._preprocess = Preprocessor(keeping, subject.max_length, padding="batch")

    def focus(self, inputs: Inputs) -> int:
        # The first gap.
        is_gap = inputs["input_word_ids"][0] == self.subject.tokenizer.mask_id
        return int(np.argmax(is_gap))

    def answer(self, row: Row) -> Markup:
        if "text" not in row or "[MASK]" not in (text := text_of(row, "text")):
            return Markup()
        model, pictures = self.subject.model, []
        gaps = model.predict(text, top_k=min(_SHOWN, model.tokenizer.vocab_size), verbose=0)
        for number, fillings in enumerate(gaps, start=1):
            names = [each["token"] for each in fillings]
            shares = [each["probability"] for each in fillings]
            pictures.append(charts.bars(names, shares, f"gap {number}"))
        return Markup().join(pictures)
