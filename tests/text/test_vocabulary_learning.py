"""Learning a vocabulary: fit for the tokenizer, any script, clear about what it leaves out."""

import random
from itertools import islice

import pytest

from bert_tf.errors import UserError
from bert_tf.text.pair_merging import merged_pieces
from bert_tf.text.tokenizer import Tokenizer
from bert_tf.text.vocabulary_learning import (
    character_pieces,
    coverage_report,
    learn_from_texts,
    learn_vocabulary,
)

# Bread, water, house, cat and the like, in scripts that differ in how they make words.
SCRIPTS = """\
Żółty dom — þessi köttur, čaj s mlékem; nước và bánh mì!
Το σπίτι, το ψωμί και η ΓΑΤΑΣ τους
Тёплый хлеб, кошка й молоко
בַּיִת לחם וחתול خُبزٌ وماء وقطّة نان و آب
घर में रोटी है। বাড়িতে জল। வீட்டில் பூனை ఇల్లు നീര്‍
บ้านมีน้ำ ເຮືອນມີນ້ຳ ផ្ទះមានទឹក အိမ်မှာရေ ཁང་པའི་ཆུ།
家里有猫和面包。家でパンをたべる、ガギグ 집에 고양이가 물을
სახლი და პური Տուն և հաց ቤትና ዳቦ ᏣᎳᎩ ᓄᓇᕗᑦ ⴰⵎⴰⵏ 𐍈𐌰 𝒳𝒴 👩‍👩‍👧‍👦 ☕️ 🇮🇸
"""


@pytest.fixture
def text_file(tmp_path):
    def write(text: str, name: str = "text.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def babble(seed: int, words: int = 20_000) -> str:
    """Text of made-up words of a few syllables, some far more common than others."""
    draw = random.Random(seed)
    syllables = [a + b + c for a in "bdfglmprst" for b in "aeiou" for c in ("", "n", "r", "st")]
    stems = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(1500)]
    weights = [1 / rank for rank in range(1, len(stems) + 1)]
    drawn = draw.choices(stems, weights, k=words)
    return " ".join(stem + draw.choice(("", "", "s", "ing")) for stem in drawn) + "\n"


def test_the_order_is_special_tokens_characters_continuations_and_longer_pieces(text_file):
    learned = learn_vocabulary([text_file("hug hug hug pug pug, bun!\n")], 21)
    assert learned.pieces == (
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        *("!", ",", "b", "g", "h", "n", "p", "u"),
        *("##b", "##g", "##h", "##n", "##p", "##u"),
        *("hug", "pug"),
    )


def test_the_size_is_met_exactly_where_the_text_has_enough_to_give(text_file):
    learned = learn_vocabulary([text_file(babble(1))], 400)
    assert len(learned.pieces) == len(set(learned.pieces)) == 400


def test_the_same_text_gives_the_same_vocabulary_however_it_is_cut_into_files(text_file):
    text = babble(2, words=3000)
    cut = text.index(" ", len(text) // 2)
    halves = [text_file(text[cut:], "second"), text_file(text[:cut], "first")]
    whole = learn_vocabulary([text_file(text)], 300)
    assert learn_vocabulary(halves, 300) == whole
    assert learn_vocabulary([text_file(text)], 300) == whole


def test_texts_teach_what_a_file_of_them_does(text_file):
    texts = [babble(seed, words=1000) for seed in (5, 6)]
    learned = learn_from_texts(iter(texts), 200)
    assert learned == learn_vocabulary([text_file("".join(texts))], 200)
    assert len(learned.pieces) == 200
    with pytest.raises(UserError, match="no words to learn a vocabulary from in the texts"):
        learn_from_texts([" "], 200)


def test_the_greedy_tokenizer_takes_fewer_pieces_than_with_pair_merging_alone(text_file):
    learned = learn_vocabulary([text_file(babble(3))], 300)
    counts: dict[str, int] = {}
    for word in babble(3).split():
        counts[word] = counts.get(word, 0) + 1
    longer = [piece for piece in learned.pieces[5:] if len(piece.removeprefix("##")) > 1]
    merged = list(islice(merged_pieces(counts), len(longer)))
    rest = [piece for piece in learned.pieces if piece not in set(longer)]
    by_merging = Tokenizer([*rest, *merged]).tokenize(babble(3)).shape[0]
    assert learned.word_pieces < 0.99 * by_merging


@pytest.mark.parametrize("lower_case", [True, False])
def test_every_script_is_spelled_and_the_figures_are_the_tokenizers_own(text_file, lower_case):
    learned = learn_vocabulary([text_file(SCRIPTS)], 2500, lower_case)
    tokenizer = Tokenizer(learned.pieces, lower_case)
    ids = tokenizer.tokenize(SCRIPTS).numpy().tolist()
    assert tokenizer.unk_id not in ids
    assert learned.unknown_words == 0
    assert learned.word_pieces == len(ids)
    assert learned.words == sum(
        not piece.startswith("##") for piece in (learned.pieces[each] for each in ids)
    )
    assert learned.character_coverage == 1


def test_known_characters_in_another_order_are_never_unknown(text_file):
    learned = learn_vocabulary([text_file("zebra yak ox 1989 été\n" * 2)], 100)
    tokenizer = Tokenizer(learned.pieces)
    assert tokenizer.unk_id not in tokenizer.tokenize("abrez kay xo 8991 tete a1x9").numpy()


def test_characters_left_out_are_counted_and_reported(text_file):
    rare = "".join(chr(0x4E00 + place) for place in range(30))
    file = text_file("the cat sat on the mat\n" * 20_000 + rare + "丁丁\n")
    learned = learn_vocabulary([file], 40)
    assert "t" in learned.pieces and "一" not in learned.pieces
    assert learned.characters_left_out[:2] == (("丁", 3), ("一", 1))
    assert learned.unknown_words == 32
    report = coverage_report(learned)
    assert "30 different characters, most often 丁 U+4E01 (3), 一 U+4E00 (1)" in report
    assert "[UNK]            32 words, 0.0267%" in report


def test_a_word_over_200_characters_is_unknown_and_teaches_nothing(text_file):
    learned = learn_vocabulary([text_file("xy " * 5 + "q" * 201 + "\n")], 50)
    assert not any("q" in piece for piece in learned.pieces)
    assert (learned.words, learned.unknown_words, learned.word_pieces) == (6, 1, 6)


def test_a_text_that_has_no_more_to_give_is_said_so(text_file):
    learned = learn_vocabulary([text_file("few words, few words\n")], 1000)
    assert len(learned.pieces) < 1000
    assert "fewer than 1,000 pieces" in coverage_report(learned)


def test_files_without_a_word_are_refused(text_file):
    with pytest.raises(UserError, match=r"no words .*blank\.txt"):
        learn_vocabulary([text_file(" \n\t\u200d\n", "blank.txt")], 100)
    with pytest.raises(UserError, match="no text files"):
        learn_vocabulary([], 100)


def test_the_written_file_is_what_the_tokenizer_reads(text_file, tmp_path):
    learned = learn_vocabulary([text_file(SCRIPTS)], 2000)
    learned.write(tmp_path / "new" / "vocab.txt")
    assert Tokenizer(tmp_path / "new" / "vocab.txt").vocabulary == learned.pieces


def test_progress_tells_both_steps(text_file):
    calls = []
    learn_vocabulary([text_file(babble(4, 5000))], 400, progress=lambda *call: calls.append(call))
    assert [*dict.fromkeys(call[0] for call in calls)] == ["counting words", "growing pieces"]
    assert all(0 <= done <= total for _, done, total in calls)


# Nine letters, two pieces each.
ENGLISH = dict.fromkeys(("the", "cat", "sat", "on", "mat"), 20_000)


def ideographs(number: int, count: int) -> dict[str, int]:
    return {chr(0x4E00 + place): count for place in range(number)}


def test_letters_get_two_pieces_and_what_stands_alone_gets_one():
    assert character_pieces({"ab": 3, "b": 1, "!": 2, "中": 1}, 30) == (
        *("!", "a", "b", "中"),
        *("##a", "##b"),
    )


def test_everything_is_kept_where_there_is_room():
    assert len(character_pieces({**ENGLISH, **ideographs(80, 1)}, 500)) == 18 + 80


def test_characters_that_hardly_any_word_needs_take_no_more_than_a_quarter():
    pieces = character_pieces({**ENGLISH, **ideographs(40, 1)}, 200)
    assert 5 + len(pieces) == 200 / 4
    assert [each for each in pieces if each >= chr(0x4E00)] == sorted(ideographs(27, 1))


def test_characters_up_to_99_95_percent_of_the_words_take_three_quarters():
    pieces = character_pieces({**ENGLISH, **ideographs(100, 5)}, 100)
    assert 5 + len(pieces) == 100 * 3 / 4


def test_characters_that_99_percent_of_the_words_need_take_all():
    pieces = character_pieces(ideographs(90, 5), 95)
    assert len(pieces) == 90


@pytest.mark.parametrize("size", [0, -3, 4, 9, 29])
def test_a_size_too_small_is_refused_with_the_smallest_that_works(size):
    counts = dict.fromkeys(("six", "letters", ":", "abcdef"), 1)
    with pytest.raises(UserError, match=rf"vocabulary size {size} is too small: .* need 30;"):
        character_pieces(counts, size)
    assert len(character_pieces(counts, 30)) == 25


@pytest.mark.slow
def test_on_novels_held_out_text_takes_few_pieces_and_no_unknown(shared_data):
    novels = sorted((shared_data / "novels").glob("*.txt"))
    held_out = [each for each in novels if each.name.startswith(("Kipling", "Hardy_Tess"))]
    learned = learn_vocabulary([each for each in novels if each not in held_out], 8000)
    tokenizer = Tokenizer(learned.pieces)
    ids = tokenizer.tokenize([each.read_text("utf-8") for each in held_out]).flat_values.numpy()
    # Hugging Face tokenizers 0.23 learns one that takes 293,524 (benchmarks/vocabulary.py).
    assert len(ids) < 1.02 * 293_524
    assert (ids == tokenizer.unk_id).mean() < 0.001
