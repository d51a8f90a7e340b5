"""Documentation strings become English sentences, and nothing else does."""

import pytest

from bert_tf.experiments.demo.prose import reads_as_english, sentences

NUMPYDOC = """
    Weigh the parcels of a van

    The van is weighed *twice*, e.g. before and after loading. The lighter
    weight is taken, see :func:`~post.scales.weigh` and ``Van`` for more [1]_.

    Parameters
    ----------
    parcels : list of Parcel, shape (n_parcels,)
        The parcels in the van. None of them may be open.
    unit : {'kg', 'lb'}, default='kg'
        The unit of the answer.

    .. warning:: A wet parcel is heavier than it should be.

    .. math::

        w = m g

    .. versionadded:: 2.1
        The unit is new in this version.

    See Also
    --------
    unload : Take the parcels out of the van again.

    References
    ----------
    .. [1] A. Postman, The weight of the parcels in our vans, 1999.

    Examples
    --------
    The scales show what is in the van.

    >>> weigh([1, 2])
    3
    """

GOOGLE = """Sorts the letters of a bag.

    ```python
    Here is code that we would rather not read.
    ```

    Args:
        letters: The letters to sort, which may
            be in any order.
        reverse (bool): Whether the last letter comes first.

    Returns:
        The letters in order: a new bag.

    Reference:
      - [The sorting of letters](https://post.example/letters) is a paper of note.

    Usage: see below::

        The code is indented here and it goes on.

        It even has a second paragraph of code.

    The end of the day is near.
    """


def test_numpydoc_gives_description_and_parameters_without_markup_code_or_citations():
    assert sentences(NUMPYDOC) == (
        "Weigh the parcels of a van.",
        "The van is weighed twice, e.g. before and after loading.",
        "The lighter weight is taken, see weigh and Van for more.",
        "The parcels in the van.",
        "None of them may be open.",
        "The unit of the answer.",
        "A wet parcel is heavier than it should be.",
        "The scales show what is in the van.",
    )


def test_google_style_gives_the_text_after_a_parameter_name_and_no_code():
    assert sentences(GOOGLE) == (
        "Sorts the letters of a bag.",
        "The letters to sort, which may be in any order.",
        "Whether the last letter comes first.",
        "The letters in order: a new bag.",
        "The end of the day is near.",
    )


def test_a_field_list_gives_the_text_of_its_fields():
    text = "Send it.\n\n:param bag: the bag that is sent.\n:type bag: a bag of the post.\n"
    assert sentences(text) == ("the bag that is sent.",)


def test_list_items_are_sentences_of_their_own():
    text = "Three rules:\n\n- The bag is closed.\n* The bag is heavy, and it\n  stays so.\n"
    assert sentences(text) == ("The bag is closed.", "The bag is heavy, and it stays so.")


def test_tables_are_left_out():
    text = """The prices are these.

    ========  ==================
    Letter    This is the price.
    ========  ==================
    """
    assert sentences(text) == ("The prices are these.",)


def test_paragraphs_of_law_are_left_out():
    text = "The post of the town.\n\nCopyright 1999 by the town. All of it is ours.\n"
    assert sentences(text) == ("The post of the town.",)


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("Return the ``bag`` of the `Van`.", "Return the bag of the Van."),
        ("See :ref:`the guide <guide-target>` for it.", "See the guide for it."),
        ("See :meth:`.Van.load` and `.Bag` of it.", "See Van.load and Bag of it."),
        ("See `the guide <https://post.example>`_ for it.", "See the guide for it."),
        ("See [the guide](https://post.example/a_(b)) for it.", "See the guide for it."),
        ("It is **not** *quite* as in **kwargs here.", "It is not quite as in **kwargs here."),
        ("It is as old as the hills (see [3]_).", "It is as old as the hills."),
    ],
)
def test_markup_is_taken_off(markup, plain):
    assert sentences(markup) == (plain,)


@pytest.mark.parametrize(
    "text",
    [
        "x = np.zeros(3) if the bag is None.",
        "int, str, bool, float64, array_like.",
        "Too short.",
        "A fragment that leads up to code:",
        "See https://post.example/letters for more of the letters.",
        "Letters bags parcels vans scales.",
        "The form is {name} and the rest of it.",
        "the n_a, n_b, n_c and n_d of x_1, x_2.",
    ],
)
def test_what_is_not_an_english_sentence_is_refused(text):
    assert not reads_as_english(text)


def test_an_english_sentence_may_hold_a_few_identifiers():
    assert reads_as_english("If axis is None, the sum over all of n_parcels is returned.")
