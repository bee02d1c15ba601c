"""This module tells whether a form asks for a secret: a password, a token, a key, the number of a
card. Pure.

A server must send the person to an address for these. Its words may be written so that only a
person finds them: with letters of other alphabets, with characters that nobody sees, joined or
spread. What is doubtful counts as a secret: a refused form costs a server a sentence, a password in
a log costs more.
"""

from __future__ import annotations

import unicodedata

from magy_server.core.text.sanitizing import INVISIBLE
from magy_server.regex import regex

_LOOKS = {
    "a": "аαɑᴀա", "b": "вβʙь", "c": "сϲᴄ", "d": "ԁᴅđ", "e": "еεᴇҽ", "f": "ꜰ", "g": "ɡɢց",
    "h": "һнհʜħ", "i": "іιɩıɪ", "j": "јϳᴊ", "k": "кκᴋ", "l": "ӏłʟ", "m": "мᴍ", "n": "ոηпɴ",
    "o": "оοօσᴏø", "p": "рρᴘ", "q": "ԛզ", "r": "гʀ", "s": "ѕꜱ", "t": "тτᴛŧ", "u": "υսᴜ",
    "v": "νѵᴠ", "w": "ԝѡωաᴡ", "x": "хχ", "y": "уүγʏ", "z": "ᴢ", "ss": "ß", "A": "АΑᎪꓮ",
    "B": "ВΒᏴꓐ", "C": "СᏟꓚ", "D": "ᎠꓓĐ", "E": "ЕΕᎬꓰ", "F": "ꓝ", "G": "Ꮐꓖ", "H": "НΗᎻꓧ",
    "I": "ІΙꓲӀ", "J": "ЈᎫꓙ", "K": "КΚᏦꓗ", "L": "ᏞꓡŁ", "M": "МΜᎷꓟ", "N": "Νꓠ", "O": "ОΟՕꓳØ",
    "P": "РΡᏢꓑ", "R": "ꓣᎡ", "S": "ЅՏᏚꓢ", "T": "ТΤᎢꓔ", "U": "Սꓴ", "V": "Ꮩꓦ", "W": "ԜᎳꓪ",
    "X": "ХΧꓫ", "Y": "УΥҮꓬ", "Z": "ΖᏃꓜ",
}  # fmt: skip
"""Letters of others that look like ours. What Unicode itself takes for ours is not among them."""
_OURS = {ord(one): ours for ours, like in _LOOKS.items() for one in like}
_DIGITS = str.maketrans("0134578@$!", "oleastbasi")
_ESCAPE = regex(r"<U\+[0-9A-F]{4,6}>")
_UNSEEN = ("Mn", "Me", "Cf")


def _plain(text: str) -> str:
    """With our letters for those that look like them, and without what nobody sees."""
    if text.isascii():
        return _ESCAPE.sub("", text)
    parts = unicodedata.normalize("NFKD", _ESCAPE.sub("", text))
    seen = (one for one in parts if unicodedata.category(one) not in _UNSEEN)
    return "".join(one for one in seen if one not in INVISIBLE).translate(_OURS)


_CAPITALS = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SPREAD = regex(r"(?<![^\W_])[^\W_](?:[\W_]{1,3}[^\W_](?![^\W_])){3,}")
"""A word with something between all its letters."""
_GAPS = regex(r"[\W_]+")

_PASSWORD = (
    r"pass ?w(?:or[dt]|d)s?|pwd|pass ?phrases?|pass ?codes?|credentials?|mots? de passe|"
    r"\w*(?:pass|kenn)wort\w*|contrasenas?|senhas?|wachtwoord(?:en)?|losenord|adgangskode|"
    r"salasana|jelszo|heslo|haslo|sifre|mat khau"
)
_ABROAD = "|".join(
    map(_plain, ("парол", "密码", "密碼", "口令", "パスワード", "비밀번호", "סיסמה", "كلمة المرور"))
)
"""Passwords, where no blanks stand between words or words have endings."""
_SERVICES = (
    r"(?:git ?hub|git ?lab|bitbucket|open ?ai|anthropic|claude|aws|amazon|azure|google|gcp|gemini|"
    r"slack|discord|telegram|npm|pypi|docker|hugging ?face|stripe|twilio|heroku|vercel|netlify|"
    r"cloudflare|atlassian|notion|figma|sentry|mistral|groq|open ?router|deep ?seek|gh|hf)"
)
_PRIVATE = (
    r"(?:private|access|secret|ssh|gpg|pgp|auth|authentication|encryption|signing|master|account)"
)
_CODES = (
    r"one time (?:codes?|pins?)|otp|totp|(?:mfa|2 ?fa|sms|security|verification|recovery|backup|"
    r"authentication|authenticator|login) codes?|(?:seed|recovery) phrases?|mnemonics?|pin codes?|"
    r"cvv|cvc|card numbers?|authenticator|sent you a (?:\w+ )?code"
)
_STRONG = (
    rf"{_PASSWORD}|api ?keys?|{_PRIVATE} ?keys?|{_CODES}|"
    r"(?:access|bearer|auth|api|refresh|session|personal) ?tokens?|jwts?|passkeys?|"
    r"log ?in (?:details|data)|connection strings?|"
    rf"{_SERVICES} (?:\w+ ){{0,3}}?(?:tokens?|keys?|pat|secrets?)"
)
"""Where these words stand, a secret is meant."""
_OTHER_KEYS = (
    "issue", "project", "ticket", "epic", "story", "task", "primary", "foreign", "sort", "cache",
    "partition", "index", "map", "lookup", "json", "hot", "shortcut", "public", "translation",
    "message",
)  # fmt: skip
_NO_OTHER = "".join(rf"(?<!\b{word} )" for word in _OTHER_KEYS)
_WEAK = rf"tokens?|(?<!\bto )pin|pat|secrets?|cookies?|bearer|{_NO_OTHER}keys?"
"""Words that may mean something else, too."""
_TOLD = (
    r"(?:your|paste|enter|type(?! of)|insert|provide|supply|fill in|give|share|copy|tell|send|"
    r"submit|input|what is the)"
)
_INVITED = regex(rf"\b(?:{_TOLD} (?:\w+ ){{0,4}}?(?:{_STRONG}|{_WEAK})|{_CODES})\b")
_MENTIONED = regex(rf"\b(?:{_STRONG})\b|{_ABROAD}")
_NAMED = regex(
    rf"\b(?:{_STRONG}|tokens?|pin|pat|secrets?|cookies?|bearer|pw|authorization)\b|"
    rf"^auth$|\bpass$|{_NO_OTHER}\bkeys?"
    r"(?: (?:value|text|string|data|material|code))?$"
)
"""What fields for secrets are called."""
_JOINED = regex(
    r"passw(?:or[dt]|d)|passphrase|passcode|kennwort|secret(?!ar)|credential|apikey|"
    rf"{_PRIVATE}key|token(?!i[sz])|"
    rf"(?:{_SERVICES}|^my|^your|^user|account|login)(?:keys?|pat)$|"
    r"^(?:my|your|user|card|bank|sim|account|login|door)?pin(?:code|number|no)?$"
)
_SHAPES = regex(
    r"\b(?:gh[opsur]_|github_pat_|glpat-|xox[abprs]-|sk-(?:ant|proj|or|live|test)|akia|"
    r"(?:sk|hf|npm|pypi)[-_](?:[.…*]|x{2}))|-----begin "
)
"""How well-known keys begin."""
_MEASURED = regex(
    r"\b\w+ (?:length|count|limit|budget|window|size|usage|cost|price|age|days|expiry|ttl|lifetime|"
    r"attempts|retries|bits)s?\b|\btokens\b"
)
"""What a number says of a secret, or of the tokens of a model."""
_COUNTED = regex(
    r"\b(?:number|amount|count|maximum|max|minimum|min|limit|many)(?: (?:of|output|input|new))* "
    r"tokens\b|\btokens? (?:limit|count|budget|window|usage)s?\b"
)


def names_secret(text: str, *, number: bool = False) -> bool:
    """Whether a field with this name or title is for a secret. `number`: it takes only a number."""
    plain = _plain(text)
    words, whole = " ".join(_CAPITALS.findall(plain)).lower(), _GAPS.sub(" ", plain.lower())
    if number:
        words, whole = _MEASURED.sub("", words), _MEASURED.sub("", whole)
        plain = words.replace("tokens", "")
    joined = (_GAPS.sub("", one).lower() for one in (plain, plain.translate(_DIGITS)))
    found = _NAMED.search(words) or _MENTIONED.search(whole)
    return found is not None or any(map(_JOINED.search, joined))


def mentions_secret(text: str) -> bool:
    """Whether what is said to the person speaks of a secret."""
    if _SHAPES.search(_plain(text).lower()):
        return True
    return any(_MENTIONED.search(words) or _INVITED.search(words) for words in _prose(text))


def invites_secret(text: str) -> bool:
    """Whether what is said to the person tells them to give a secret ("paste your token"), or
    speaks of one of those that numbers are."""
    return any(map(_INVITED.search, _prose(text)))


def _prose(text: str) -> tuple[str, str]:
    """In small letters with one blank between words: as it is, and with letters for digits."""
    plain = _SPREAD.sub(lambda found: _GAPS.sub("", found.group()), _plain(text).lower())
    words, other = (_GAPS.sub(" ", one) for one in (plain, plain.translate(_DIGITS)))
    return _COUNTED.sub("", words), _COUNTED.sub("", other)
