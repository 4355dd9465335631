"""Names from outside: those that are names, and would do harm where they are not escaped; and those that are refused."""

ACCEPTED = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></textarea>-->",
    "=HYPERLINK(1)",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    'a"} 1\nrankwatch_forged{x="'.replace("\n", "\\n"),
    'x",evil="1"} 7 #',
    "back\\slash\\",
    "::error file=a,line=1::forged",
    "%0A::warning::forged%0D",
    "]]><failure/>&amp;",
    "[red]markup[/red]",
    "[click](javascript:alert(1))",
    "| cell | `code` | **bold** |",
    "{topic:0}:meta",
    "${jndi:ldap://x/a} {{7*7}} %s %n {0}",
    "../../etc/passwd",
    "..\\..\\windows",
    "'; DROP TABLE models; --",
    "$(touch /tmp/x)`id`",
    "a=b&c=d?e#f",
    " ",
    "null",
    "__proto__",
    "模型 é 🧪",
    "e\u0301" * 60,
    "x" * 200,
]
"""Each is a name of a model, a benchmark and an item; none changes the text around it on any surface."""

REFUSED = [
    "",
    "x" * 201,
    "x" * 65_536,
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "\x00",
    "line\nbreak",
    "carriage\rreturn",
    "tab\there",
    "back\b\b\bspace",
    "\x7f",
    "right\u202eto left",
    "isolate\u2066d\u2069",
    "mark\u200f",
    "arabic\u061cmark",
    "separator\u2028",
    "\ufeffmark",
]
"""None of these is a name: the record is refused, and no message about it shows such character."""

CONTROLS = (
    {chr(c) for c in [*range(32), *range(0x7F, 0xA0)]} - {"\n"}
    | set("\u061c\u200e\u200f\u2028\u2029\ufeff")
    | {chr(c) for c in [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]}
)
"""What must not reach a terminal from outside."""
