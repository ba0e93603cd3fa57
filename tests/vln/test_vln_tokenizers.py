import gzip

import numpy as np
import pytest

from memenvs.vln.tokenizers import WordPieceTokenizer, WordTokenizer, frequent_words, split_words


def test_words():
    assert split_words("[NAV] Café_bar, don't!\n [ORA] nAv") == [
        "[NAV]", "cafe", "_", "bar", ",", "don", "'", "t", "!", "[ORA]", "nav",
    ]  # fmt: skip


def test_vocabulary_is_ordered_by_count_then_alphabet():
    assert frequent_words(["b a a c", "[TAR] b c", "c d"], at_least=2) == ("c", "a", "b")


def test_word_tokenizer():
    words = WordTokenizer(("go", "on"))
    assert words.tokens[:6] == ("[PAD]", "[UNK]", "[SEP]", "[NAV]", "[ORA]", "[TAR]")
    numbers = words.encode("[ORA] Go up on", 7)
    assert numbers.tolist() == [4, 6, 1, 7, 2, 0, 0]
    assert numbers.dtype == np.int64
    assert words.decode(numbers) == "[ORA] go [UNK] on [SEP]"


def test_texts_that_are_too_long():
    words = WordTokenizer(tuple("abcd"))
    for most, cut, cut_start in ((4, "a b c [SEP]", "b c d [SEP]"), (2, "a [SEP]", "d [SEP]")):
        assert words.decode(words.encode("a b c d", most)) == cut
        assert words.decode(words.encode("a b c d", most, too_long="cut_start")) == cut_start
    assert words.decode(words.encode("a b c d", 5, too_long="error")) == "a b c d [SEP]"
    with pytest.raises(ValueError, match="the text has 5 tokens with the separator, max_tokens is 4: 'a b c d'"):
        words.encode("a b c d", 4, too_long="error")


def test_word_pieces_take_the_longest_that_fits(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[SEP]", "un", "##aff", "##able", "##a", "##ble", "aff", ".", "naive"]
    path = tmp_path / "vocab.txt.gz"
    path.write_bytes(gzip.compress(("\n".join(vocabulary) + "\n").encode()))
    pieces = WordPieceTokenizer.from_file(path)
    assert pieces.pieces("Unaffable. naïve affb [TAR]") == ["un", "##aff", "##able", ".", "naive", "[UNK]", "[TAR]"]
    assert pieces.tokens[-3:] == ("[NAV]", "[ORA]", "[TAR]")
    assert pieces.encode("[TAR] un", 4).tolist() == [len(vocabulary) + 2, 3, 2, 0]


def test_words_of_more_than_a_hundred_letters_are_unknown():
    """But for those of the vocabulary, as in BERT."""
    pieces = WordPieceTokenizer(["[PAD]", "[UNK]", "[SEP]", "a", "##a", "b" * 101])
    assert pieces.pieces("a" * 100) == ["a"] + ["##a"] * 99
    assert pieces.pieces("a" * 101) == ["[UNK]"]
    assert pieces.pieces("b" * 101) == ["b" * 101]


def test_vocabularies_differ_in_their_fingerprints():
    one, same, other = (WordTokenizer(words) for words in (("go", "on"), ["go", "on"], ("on", "go")))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.fingerprint == "6a54dbeed0eb7e23"  # in checkpoints
    assert frequent_words(["a b a b a", "a b a b c"]) == ("a",)  # by default those that occur five times


def test_the_last_line_of_a_vocabulary_may_have_no_end(tmp_path):
    for text in ("[PAD]\n[UNK]\n[SEP]\ngo", "[PAD]\n[UNK]\n[SEP]\ngo\n"):
        (tmp_path / "vocab.txt").write_text(text)
        assert WordPieceTokenizer.from_file(tmp_path / "vocab.txt").tokens[:4] == ("[PAD]", "[UNK]", "[SEP]", "go")
    for tokens in ((), ("[UNK]", "[PAD]", "[SEP]"), ("[PAD]", "[UNK]"), ("[PAD]", "[SEP]")):
        with pytest.raises(ValueError, match=r"begins with \[PAD\] and has \[UNK\] and \[SEP\]"):
            WordPieceTokenizer(tokens)


def test_files_that_are_no_vocabulary(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*vocab.txt.gz.*tokenizer 'words' needs nothing"):
        WordPieceTokenizer.from_file(tmp_path / "vocab.txt.gz")
    for content, message in (
        (gzip.compress(b"hello\nworld\n"), r"a WordPiece vocabulary begins with \[PAD\]"),
        (b"\x1f\x8bno", ""),
        (gzip.compress(b"a\n" * 10**6), "unpacks to more than 100 times its size"),
    ):
        (tmp_path / "vocab.gz").write_bytes(content)
        with pytest.raises(ValueError, match=rf"vocab\.gz: {message}"):
            WordPieceTokenizer.from_file(tmp_path / "vocab.gz")
