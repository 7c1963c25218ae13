"""Porter's stemmer with the extensions of NLTK, which ADK's ROUGE scores are made with: English words without endings.

A stem is no word (`responses` and `responsive` are both `respons`); two words with the same stem count as the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

_IRREGULAR: Final[Mapping[str, str]] = MappingProxyType(
    {word: word for word in ("news", "howe", "proceed", "exceed", "succeed", "sky", "inning", "outing", "canning")}
    | {"skies": "sky", "innings": "inning", "outings": "outing", "cannings": "canning"}
    | {"dying": "die", "lying": "lie", "tying": "tie"}
)
_SECOND: Final = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    *(("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful")),
)
_THIRD: Final = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
_FOURTH: Final = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


def stem(word: str) -> str:
    """The stem of a word of small ASCII letters and digits."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    for step in (_plural, _participle, _final_y, _long_endings, _middle_endings, _last_endings, _final_e):
        word = step(word)
    return word


def _kinds(word: str) -> str:
    """`v` for each vowel, `c` for each consonant; `y` is a vowel after a consonant."""
    kinds = ""
    for place, letter in enumerate(word):
        vowel = letter in "aeiou" or (letter == "y" and place > 0 and kinds[-1] == "c")
        kinds += "v" if vowel else "c"
    return kinds


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant: about the number of syllables before the last."""
    return _kinds(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether it ends with consonant, vowel, consonant, so that a final `e` was probably cut off."""
    kinds = _kinds(word)
    return (kinds[-3:] == "cvc" and word[-1] not in "wxy") or kinds == "vc"


def _doubles(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _kinds(word)[-1] == "c"


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    ending = next((one for one in ("ed", "ing") if word.endswith(one) and "v" in _kinds(word.removesuffix(one))), None)
    if ending is None:
        return word
    cut = word.removesuffix(ending)
    if cut.endswith(("at", "bl", "iz")):
        return f"{cut}e"
    if _doubles(cut):
        return cut if cut[-1] in "lsz" else cut[:-1]
    return f"{cut}e" if _measure(cut) == 1 and _is_short(cut) else cut


def _final_y(word: str) -> str:
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > 2 and _kinds(word)[-2] == "c" else word


def _long_endings(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]):
        return _long_endings(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _replaced(word, _SECOND)


def _middle_endings(word: str) -> str:
    return _replaced(word, _THIRD)


def _replaced(word: str, endings: Sequence[tuple[str, str]]) -> str:
    """The word with its first ending of the list replaced, where enough of it is left."""
    found = next((pair for pair in endings if word.endswith(pair[0])), None)
    if found is None:
        return word
    cut = word.removesuffix(found[0])
    return cut + found[1] if _measure(cut) else word


def _last_endings(word: str) -> str:
    ending = next((one for one in _FOURTH if word.endswith(one)), None)
    if ending is None:
        return word
    cut = word.removesuffix(ending)
    fits = _measure(cut) > 1 and (ending != "ion" or cut[-1] in "st")
    return cut if fits else word


def _final_e(word: str) -> str:
    if word.endswith("e"):
        cut = word[:-1]
        word = cut if _measure(cut) > 1 or (_measure(cut) == 1 and not _is_short(cut)) else word
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
