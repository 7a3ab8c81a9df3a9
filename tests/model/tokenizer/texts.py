# tests/model/tokenizer/texts.py - texts that tokenizers are compared on
"""Texts of many kinds: scripts, digits, emoji, combining marks, white space, code, control tokens, and
random ones, which a seed determines."""
import random
import unicodedata

SPACES = " \t\n\r\v\f\x85\xa0\u1680\u2000\u2003\u2009\u2028\u2029\u202f\u205f\u3000"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
CONTROL_TOKENS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<file_sep>", "<reponame>", "<bos>", "<eos>",
                  "<unk>", "<pad>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<unused0>", "<unused17>",
                  "<unused6241>", "[multimodal]", "<start_of_image>", "<s>", "</s>", "<0x0A>", "<0xff>",
                  "<td>", "</table>", "<h1>"]
SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "I'm sure they've said she'd go; we'll see. It's 'quoted', isn't it? DON'T! I'LL, WE'VE, THEY'RE",
    "He’s here, it’s “typographic” – and so on…",
    "Größe, Straße, Ærøskøbing, naïve café, coöperate, façade, piñata, ĳssel, œuvre",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ, ἄνθρωπος",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. السَّلَامُ ١٢٣٤٥",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। १२३४५६",
    "আমি বাংলায় গান গাই ১২৩ — தமிழ் மொழி ௧௨௩ — తెలుగు భాష ౧౨౩ — ಕನ್ನಡ ೧೨೩ — മലയാളം ൧൨൩",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ๑๒๓ — ພາສາລາວ ໑໒໓ — ភាសាខ្មែរ ១២៣ — မြန်မာဘာသာ ၁၂၃",
    "いろはにほへと ちりぬるを。カタカナ、ﾊﾝｶｸ。私は東京で寿司を食べました。１２３４",
    "我能吞下玻璃而不伤身体。龍、龜、鬱。〇一二三四五六七八九十百千萬億 𠜎𠜱𠝹𠱓",
    "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요. 한글 ㄱㄴㄷ",
    "ქართული ენა, հայերեն լեզու, አማርኛ ቋንቋ ፩፪፫, ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ, ᠮᠣᠩᠭᠣᠯ, བོད་སྐད་ ༡༢༣, ਪੰਜਾਬੀ ੧੨੩, ગુજરાતી ૧૨૩",
    "Zażółć gęślą jaźń; Příliš žluťoučký kůň úpěl; Árvíztűrő tükörfúrógép; Pijamalı hasta yağız şoföre",
    "Tiếng Việt có nhiều dấu: ắ ằ ẳ ẵ ặ, ế ề ể ễ ệ, ố ồ ổ ỗ ộ, ứ ừ ử ữ ự",
    "e\u0301 a\u0308 o\u0302\u0323 z\u0334\u0351\u0322a\u0310l\u031bg\u0301o\u0489 \u0301alone",
    "🙂 😀😃😄 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇳🇴🇩🇪 ❤️ ☕️ 1️⃣2️⃣ 🤷🏾‍♀️ ⌚ ™ © ®",
    "½ ¾ ² ³ ₁₂ Ⅳ ⅷ ① ⑩ ㊿ ௰ 𝟘𝟙𝟚 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐌰𐌱 𓀀𓁐 𐏿",
    "1 12 123 1234 12345 123456 1234567 3.14159 1e-9 0x1F 1,234,567.89 -42 +7 50% $9.99 €5 £3 ¥100 10³",
    "a1b2c3 v2.0.1 COVID19 2nd 3rd x86_64 sm_90a IPv4 192.168.0.1 2024-02-29T12:34:56Z",
    "#include <vector>\nint main() {\n\treturn std::accumulate(v.begin(), v.end(), 0);  // sum\n}\n",
    "def f(x):\n    if x > 0:\n        return [i**2 for i in range(x)]\n\n    return None\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * c[i]; }\n\n\n\n/* end */",
    "SELECT * FROM t WHERE a='x' AND b<>\"y\" -- comment;\r\nGO\r\n\r\n",
    "<html>\n  <body class=\"a b\">\n    <p>Hi &amp; bye</p>\n  </body>\n</html>\n",
    "{\"key\": [1, 2.5, null, true], \"näme\": \"va\\\"lue\\n\"}",
    "https://example.org/a/b?c=d&e=%20f#g user.name+tag@mail.example.com C:\\Users\\x /usr/lib64",
    "$$\\int_0^\\infty e^{-x^2} dx = \\frac{\\sqrt{\\pi}}{2}$$ ∑ ∏ √ ∞ ≤ ≥ ≠ ∈ ∀ ∃ → ⇒ ↔",
    "_____ ----- ===== ***** ##### ..... !!!!! ????? ~~~~~ ((((())))) <<<<<>>>>> ````` \"\"\"\"\"",
    "ALLCAPS MixedCase camelCase snake_case kebab-case SCREAMING_SNAKE aBcDeFg",
    "ſ 'ſ ẞ ß İ ı K Å ﬁ ﬂ ǅ ʼn",
    "'s 'S 't 'T 're 'RE 'rE 've 'Ve 'm 'M 'll 'LL 'lL 'd 'D 'x ''s s's",
    "▁ ▁▁ a▁b ▁a Ġ Ġa Ċ ĉ",
    "a" * 100, "ab" * 80, "1" * 50, "-" * 80, "漢" * 40, "é" * 40, "🙂" * 20, " " * 70, "\n" * 40, "\t" * 33,
]


def white_space():
    texts = ["", *SPACES, *INVISIBLE]
    for space in SPACES + INVISIBLE:
        texts += [f"a{space}b", f"{space}a", f"a{space}", f"{space}{space}a{space}{space}", f"1{space}2", f"{space}!",
                  f"a {space} b"]
    for count in range(1, 9):
        texts += [" " * count + "a", "a" + " " * count, "\n" * count + "b", "a" + "\n" * count + " b",
                  " \n" * count, "\t" * count + "x", "a" + "\r\n" * count + "c", " " * count + "\n" + " " * count]
    return texts


def control_tokens():
    texts = []
    for token in CONTROL_TOKENS:
        texts += [token, f"a{token}b", f" {token} ", f"{token}\n{token}", token[:-1], token[1:], f"<{token}>"]
    texts.append("<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n")
    texts.append("<start_of_turn>user\nHi there<end_of_turn>\n<start_of_turn>model\n")
    texts.append("".join(CONTROL_TOKENS))
    return texts


def random_character(source):
    kind = source.random()
    if kind < 0.3:
        return chr(source.randrange(0x20, 0x7f))
    if kind < 0.4:
        return source.choice(SPACES + INVISIBLE)
    if kind < 0.5:
        return source.choice("0123456789٣५๕３½Ⅷ")
    last = 0x2ff if kind < 0.6 else 0xffff if kind < 0.85 else 0x1fbff
    while True:
        character = chr(source.randrange(1, last + 1))
        # Surrogates are no text; what is not assigned may be by the time of another version.
        if unicodedata.category(character) not in ("Cs", "Cn"):
            return character


def random_texts(seed, count):
    source = random.Random(seed)
    words = [word for sentence in SENTENCES for word in sentence.split(" ")]
    texts = []
    for index in range(count):
        length = source.randrange(1, 40)
        if index % 2:
            texts.append("".join(random_character(source) for _ in range(length)))
        else:
            parts = [source.choice([*words, *CONTROL_TOKENS, " ", "  ", "\n", ", ", ". ", "'s", "12"])
                     for _ in range(length // 2 + 1)]
            texts.append(source.choice(["", " "]).join(parts))
    return texts


def all_texts(seed, random_count):
    texts = SENTENCES + white_space() + control_tokens() + random_texts(seed, random_count)
    return [text for text in dict.fromkeys(texts) if "\0" not in text]


def broken_texts(seed, count):
    """Bytes of which some are no UTF-8."""
    source = random.Random(seed)
    texts = []
    for _ in range(count):
        text = "".join(random_character(source) for _ in range(source.randrange(1, 20))).encode()
        place = source.randrange(len(text))
        change = bytes(source.randrange(1, 256) for _ in range(source.randrange(3)))
        texts.append(text[:place] + change + text[place + source.randrange(3):])
    return [text for text in dict.fromkeys(texts) if text and b"\0" not in text]
