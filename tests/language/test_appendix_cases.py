"""A catalogue of what models are known to send, each kind with its verdict.

The numbered cases are replies and programs that broke one parser or another; the named
ones come from reports of users of code-writing loops. Each reply takes the whole way:
the program is found in it, then read.
"""

import pytest
from language.programs import HEAD, RETURN, SMALL, program, read

from structjax.language.parse import StructureError, parse
from structjax.language.structure import Call, Observation, Weight
from structjax.llm.reply import ReplyError, extract_program

PLAIN = f"""{HEAD}def policy(obs):
    err = obs.speed - obs.yaw
    a = tanh(w * err)
{RETURN}"""
OTHER = PLAIN.replace("tanh", "sin")
DEEP = 10_000


def fenced(code: str, tag: str = "python", ticks: str = "```") -> str:
    return f"{ticks}{tag}\n{code}{ticks}\n"


def indented(text: str, by: str = "   ") -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


def verdict(reply: str) -> str:
    """`ok`, or the codes that refuse the reply or the program in it, each once."""
    try:
        return verdict_of_program(extract_program(reply))
    except ReplyError as error:
        return error.code


def verdict_of_program(text: str) -> str:
    try:
        parse(text, SMALL)
    except StructureError as error:
        found = dict.fromkeys(p.code for p in error.problems if p.severity == "error")
        return " ".join(found)
    return "ok"


REPLIES = {
    "2 CRLF": (fenced(PLAIN).replace("\n", "\r\n"), "ok"),
    "4 CR only": (fenced(PLAIN).replace("\n", "\r"), "ok"),
    "5 prose around": (f"Sure! Here it is:\n\n{fenced(PLAIN)}\nThis uses err.", "ok"),
    "7 no tag": (fenced(PLAIN, ""), "ok"),
    "8 Python tag": (fenced(PLAIN, "Python"), "ok"),
    "10 4-tick fence": (fenced(PLAIN, ticks="````"), "ok"),
    "11 indented fence": (f"1. do:\n{indented(fenced(PLAIN))}", "ok"),
    "13 no fence and prose": (f"{PLAIN}\nThis policy steers left.", "SYNTAX"),
    "14 think block": (
        f"<think>maybe\n```python\nx=1\n```</think>\n{fenced(PLAIN)}",
        "ok",
    ),
    "16 same block twice": (fenced(PLAIN) * 2, "ok"),
    "17 two different blocks": (fenced(PLAIN) + fenced(OTHER), "AMBIGUOUS"),
    "19 fences glued": (
        f'```json\n{{"a":1}}\n``````python\n{PLAIN}\n```',
        "TRUNCATED",
    ),
    "20 only json": (fenced('{"a":1}\n', "json"), "WRONG_LANG"),
    "22 usage example block": (
        fenced(PLAIN) + fenced("print(policy([1, 2]))\n"),
        "ok",
    ),
    "23 unclosed fence": (f"```python\n{PLAIN}", "TRUNCATED"),
    "25 empty": ("", "EMPTY"),
    "26 white space": (" \n\t", "EMPTY"),
    "28 refusal": ("I'm sorry, I can't help with that.", "NO_CODE"),
    "29 wrong function name": (
        fenced(PLAIN.replace("policy", "controller")),
        "NO_ENTRY",
    ),
    "stray fence before": (f"```\n{fenced(PLAIN)}", "TRUNCATED"),
    "tag that stops in the fence": (f"```python\n{PLAIN}```</code", "TRUNCATED"),
    "tag that stops after the fence": (f"{fenced(PLAIN)}</code", "ok"),
    "a diff as a diff": (fenced(f"-{HEAD}+w = weight(1.0)\n", "diff"), "WRONG_LANG"),
    "a diff as Python": (fenced(f"-{HEAD}+{HEAD}{PLAIN}"), "SYNTAX"),
    "half of the evolve markers": (fenced(f"# EVOLVE-BLOCK-START\n{PLAIN}"), "ok"),
    "cut in the middle of a line": (f"```python\n{PLAIN[:60]}", "TRUNCATED"),
    "cut, and a fence closed by the server": (fenced(f"{PLAIN[:55]}\n"), "SYNTAX"),
}


@pytest.mark.parametrize("case", REPLIES)
def test_reply(case):
    reply, wanted = REPLIES[case]
    assert verdict(reply) == wanted


#: Whole programs.
WHOLE = {
    "1 plain": (PLAIN, "ok"),
    "31 import os": (f"import os\n{PLAIN}", "IMPORT"),
    "32 from jax import": (f"from jax import numpy as jnp\n{PLAIN}", "IMPORT"),
    "65 recursion": (program("a = policy(obs)"), "RECURSION"),
    "67 helper": (
        program("a = gain(w)", module="def gain(x):\n    return tanh(x)\n"),
        "ok",
    ),
    "74 100,000 lines": ("x=1\n" * 100_000 + PLAIN, "TOO_LONG"),
    "82 no-break space": (PLAIN.replace("    err", "\xa0   err"), "NON_ASCII"),
    "83 zero-width space": (PLAIN.replace("err =", "er\u200br ="), "NON_ASCII"),
    "85 nul": (f"{PLAIN}\0", "NON_ASCII"),
    # Rules of the language win: space at the ends of lines never matters, comments may
    # hold any character.
    "86 form feed": (f"\f{PLAIN}", "ok"),
    "88 non-ASCII comment": (f"{PLAIN}# d\xe9j\xe0\n", "ok"),
    "89 tabs and spaces": (PLAIN.replace("    err", "\terr"), "SYNTAX"),
    "91 indented as a whole": (indented(PLAIN, "    "), "SYNTAX"),
    "92 Python 2 print": (program("print 'x'\na = 1"), "SYNTAX"),
    "94 placeholder": (f"{HEAD}def policy(obs):\n    ...\n", "NO_RETURN CONST"),
    "95 pass only": (f"{HEAD}def policy(obs):\n    pass\n", "NO_RETURN"),
    "97 merge markers": (f"<<<<<<< SEARCH\n{PLAIN}", "SYNTAX"),
    "98 escaped newlines": (PLAIN.replace("\n", r"\n"), "SYNTAX"),
    "101 own clip": (
        program("a = 1", module="def clip(x):\n    return x\n"),
        "SHADOW",
    ),
    "103 self": (PLAIN.replace("(obs)", "(self, obs)"), "SIGNATURE"),
    "104 default": (PLAIN.replace("(obs)", "(obs, k=1)"), "SIGNATURE"),
    "106 class": (f"class Policy:\n    pass\n{PLAIN}", "NODE"),
    "107 decorator": (PLAIN.replace("def", "@jax.jit\ndef"), "NODE"),
    "118 call at the end": (f"{PLAIN}policy([1])\n", "NODE TOPLEVEL"),
    "119 main guard": (
        f"{PLAIN}if __name__ == '__main__':\n    policy(1)\n",
        "DUNDER CONST TOPLEVEL",
    ),
    "state as argument": (PLAIN.replace("(obs)", "(obs, state)"), "SIGNATURE"),
    "print at the end": (f"{PLAIN}print('done')\n", "CONST TOPLEVEL"),
    "torch helper again": (
        program("a = 1", module="def relu(x):\n    return max(x, 0)\n"),
        "SHADOW",
    ),
    "the rest unchanged": (
        f"{HEAD}def policy(obs):\n    err = obs.speed\n    # ... rest unchanged\n",
        "NO_RETURN",
    ),
    "the start unchanged": (
        f"{HEAD}def policy(obs):\n    # ... as before\n{RETURN}",
        "NAME",
    ),
    "a text of 10 MB": (f"a = '{'x' * 10_000_000}'\n", "TOO_LONG"),
    "100 levels of blocks": (
        "".join(" " * i + "if w:\n" for i in range(100)) + " " * 100 + "pass\n",
        "SYNTAX",
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_program(case):
    text, wanted = WHOLE[case]
    assert verdict_of_program(text) == wanted


#: Lines of a policy; those that assign no `a` are refused before that matters.
LINES = {
    "34 dunder chain": ("a = ().__class__.__bases__[0].__subclasses__()", "DUNDER"),
    "35 getattr": ("a = getattr(obs, 'x')", "CONST CALL"),
    "37 open": ("a = open('/etc/passwd')", "CONST CALL"),
    "38 method": ("a = obs.tiles.x.mean()", "ATTR"),
    "40 jnp": ("a = jnp.tanh(obs.speed)", "ok"),
    "41 f-string": ("a = f'{obs}'", "NODE"),
    "43 lambda": ("a = (lambda: 1)()", "NODE"),
    "44 walrus": ("a = (y := obs.speed)", "NODE"),
    "46 generator": ("a = sum(x for x in obs.tiles.x)", "NODE"),
    "47 while": ("while True:\n    pass\na = 1", "NODE"),
    "49 huge range": ("a = 0\nfor i in range(1000000):\n    a = a + 1", "LOOP"),
    "50 nested ranges": (
        "a = 0\nfor i in range(60):\n    for j in range(60):\n        a = a + 1",
        "LOOP",
    ),
    "52 small range": ("a = 0.0\nfor i in range(3):\n    a = a + obs.tiles.x[i]", "ok"),
    "53 over a vector": ("a = 0.0\nfor x in obs.tiles.x:\n    a = a + x", "LOOP"),
    "55 x ** y": ("a = obs.speed ** obs.yaw", "POW"),
    "56 x ** 2": ("a = obs.speed ** 2", "ok"),
    "58 text product": ("a = 'a' * 1000000", "CONST"),
    "59 shift": ("a = 1 << 30", "NODE"),
    "61 giant hex": (f"a = 0x{'f' * 50_000}", "CONST"),
    "62 1e400": ("a = 1e400", "CONST"),
    "64 bytes": ("a = b'x'", "CONST"),
    "68 brackets": (f"a = {'(' * DEEP}1{')' * DEEP}", "TOO_DEEP"),
    "70 nots": (f"a = {'not ' * DEEP}1", "TOO_DEEP"),
    "71 sum of 3,000": (f"a = {'+'.join('1' * 3_000)}", "TOO_DEEP"),
    "73 5,000 elifs": (
        "if w > 0:\n    pass\n" + "elif w > 0:\n    pass\n" * 5_000,
        "TOO_LONG",
    ),
    "73 900 elifs": (
        "if w > 0:\n    pass\n" + "elif w > 0:\n    pass\n" * 900,
        "TOO_DEEP",
    ),
    "76 power chain": (f"a = {'**'.join('2' * 9_000)}", "TOO_DEEP"),
    "77 cyrillic o": ("a = \u043ebs.speed", "NON_ASCII"),
    "79 greek name": ("\u03b8 = obs.speed\na = \u03b8", "NON_ASCII"),
    "80 smart quotes": ("a = param(\u201cw\u201d)", "NON_ASCII"),
    "100 shadow obs": ("obs = 1\na = obs", "SHADOW FIELD"),
    "109 global": ("global k\nk = 1\na = k", "NODE"),
    "110 try": ("try:\n    a = 1\nexcept:\n    a = 0", "NODE"),
    "112 match": ("match w:\n    case 1:\n        a = 1", "NODE"),
    "113 assert": ("assert obs.speed > 0\na = 1", "NODE"),
    "115 raise": ("a = 1\nraise ValueError", "NODE"),
    "116 yield": ("a = 1\nyield 1", "NODE"),
    "121 matmul": ("a = obs.quat @ obs.quat", "NODE"),
    "122 noise": ("a = np.random.normal()", "ATTR"),
    "124 undefined function": ("a = softmin(obs.speed)", "CALL"),
    "xor as power": ("a = obs.speed ^ 2", "NODE"),
    "logistic": ("a = logistic(obs.speed)", "CALL"),
    "inv": ("a = inv(obs.speed)", "CALL"),
    "not sign": ("a = \u00ac (w > 0)", "NON_ASCII"),
    "minus sign": ("a = 1 \u2212 w", "NON_ASCII"),
    "middle dot": ("a = 2 \u00b7 w", "NON_ASCII"),
    "root sign": ("a = \u221aw", "NON_ASCII"),
    "2x": ("a = 2w", "SYNTAX"),
    "2 x": ("a = 2 w", "SYNTAX"),
    "w(x)": ("a = w(obs.speed)", "CALL"),
    "2(x)": ("a = 2(obs.speed)", "CALL"),
    "wide letters": ("a = \uff4f\uff42\uff53.speed", "NON_ASCII"),
    "ligature": ("\ufb01x = 1\na = \ufb01x", "NON_ASCII"),
    "in place": ("x = obs.tiles.x\nx[0] = 1\na = x[0]", "NODE"),
    "number of 5,000 digits": (f"a = {'9' * 5_000}", "SYNTAX"),
    "endless power of constants": ("a = 2 ** 10 ** 9", "POW"),
}


@pytest.mark.parametrize("case", LINES)
def test_line(case):
    text, wanted = LINES[case]
    assert verdict_of_program(program(text)) == wanted


#: The last line of a policy.
RETURNS = {
    "a dictionary": ("return {'steer': w, 'gas': w}", "NODE"),
    "a list": ("return [w, w]", "NODE"),
    "a tuple": ("return w, w", "NODE"),
    "a vector": ("return stack(w, w)", "RETURN"),
    "a scalar": ("return w", "RETURN"),
    "none": ("return None", "RETURN"),
    "one action too few": ("return action(steer=normal(w))", "HEAD"),
    "one too many": (
        "return action(steer=normal(w), gas=normal(w), brake=normal(w))",
        "HEAD",
    ),
    "another order": ("return action(gas=normal(w), steer=normal(w))", "ok"),
}


@pytest.mark.parametrize("case", RETURNS)
def test_return(case):
    line, wanted = RETURNS[case]
    assert verdict_of_program(f"{HEAD}def policy(obs):\n    {line}\n") == wanted


def test_an_unusual_quotient_is_read_as_it_is_written():
    # A parser of formulas made `c / sqrt(x)` into `cos(c / x)`: nothing is guessed.
    latent = read("a = w / sqrt(obs.speed)").structure.latents[-1]
    root = Call("sqrt", (Observation("speed"),))
    assert latent.expression == Call("div", (Weight("w"), root))


def test_actions_are_returned_by_name():
    def text(*heads: str) -> str:
        return f"{HEAD}def policy(obs):\n    return action({', '.join(heads)})\n"

    heads = "steer=normal(w)", "gas=normal(obs.yaw)"
    first, second = (parse(text(*h), SMALL) for h in (heads, heads[::-1]))
    assert first.structure == second.structure
