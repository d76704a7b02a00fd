"""Check the English of pages, docstrings, messages and names: `python tools/prose.py [PATH ...]` (`make lint` runs it).

It looks for forms that readers stumbled over, spellings other than those of docs/glossary.md, sentences that are
too long, and functions that are named by a bare participle. It prints one line per finding.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35  # words of a sentence

FORMS = {  # what is written: what to write instead
    r"(?<![Tt]here )\b(is|are|was|were) no (?!longer\b|\w+ than\b)": "is not a ..., must be ...",
    r"\b[Tt]old\b": "what it is: given, known, printed, stated",
    r"\b(once|twice|times|seconds|ms|bytes|numbers?|values?|calls?|passes|lines?|MB|GB) an? "
    r"(sample|row|bag|step|pass|fit|round|start|iteration|class|state|label|token|sentence|image|call|query)\b": "per",
    r"\banew\b": "again",
    r"\b(slip of the pen|journey|nobody|let in)\b": "it without the metaphor",
}
SPELLINGS = {  # other than docs/glossary.md
    r"\bloss augmented\b": "loss-augmented",
    r"\bself paced\b": "self-paced",
    r"\b[Mm]ultiple instance learning\b": "multiple-instance learning",
    r"\b[Kk]mers?\b(?!`)": "k-mer",
    r"\bFrank-Wolfe\b": "Frank–Wolfe",
    r"(?<!\.)\bdatasets?\b(?![`.])": "data set",
    r"\b[Pp]art of speech\b": "part-of-speech",
    r"\b[Cc]o-reference\b": "coreference",
    r"\b[Hh]yper-parameters?\b": "hyperparameter",
    r"\b(localiz|generaliz|regulariz|normaliz|optimiz|minimiz|maximiz|initializ)\w+": "British spelling: -is-",
}
NOT_PARTICIPLES = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
IRREGULAR = re.compile(
    "told|kept|found|held|given|taken|seen|known|shown|drawn|chosen|written|left|built|sent|brought|bent|gone|done|made|"
    "spread|torn|worn|hidden|forgotten|begun|meant|met|paid|said|sold|spent|thought|won"
)


def main(paths: list[str]) -> int:
    """Print what is found in the files of `paths` (or of the whole repository), and say how many findings there are."""
    files = [file for path in paths for file in _files(Path(path))] or _files(ROOT)
    findings = [f"{file.relative_to(ROOT)}:{finding}" for file in files for finding in check_file(file)]
    sys.stdout.write("\n".join([*findings, f"{len(findings)} findings in {len(files)} files\n"]))
    return bool(findings)


def check_file(path: Path) -> Iterator[str]:
    """Yield the findings of one file, as `line: text: advice`."""
    if path.suffix == ".md":
        for line, text in _markdown(path.read_text()):
            yield from check_text(line, text)
    else:
        tree = ast.parse(path.read_text())
        for line, text in _python(tree):
            yield from check_text(line, text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and _is_participle(node):
                yield f"{node.lineno}: def {node.name}: a function is a verb, not a bare participle"


def check_text(line: int, text: str) -> Iterator[str]:
    """Yield the findings of one paragraph."""
    for pattern, advice in (FORMS | SPELLINGS).items():
        for found in re.finditer(pattern, text):
            around = text[max(0, found.start() - 25) : found.end() + 25]
            yield f"{line}: '{around}': write {advice}"
    for sentence in re.split(r"(?<=[.!?])[)”\"']*\s+", text):
        if (n := len(re.findall(r"[\w’'-]+", sentence))) > LONGEST:
            yield f"{line}: a sentence of {n} words (at most {LONGEST}): '{sentence[:60]}...'"


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path.resolve()]
    if path.resolve() == ROOT:
        pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
        return sorted(pages) + sorted((ROOT / "src").rglob("*.py"))
    return sorted(
        file.resolve() for kind in ("*.md", "*.py") for file in path.rglob(kind) if "_build" not in file.parts
    )


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, items and cells of a page, without code and links' targets."""
    text = re.sub(r"(?ms)^([`~:]{3,})(.*?)^\1[`~:]*\s*$", lambda block: "\n" * block[0].count("\n"), text)
    paragraph: list[str] = []
    start = 1
    for number, line in enumerate([*text.split("\n"), ""], 1):
        line = line.strip()
        if line.startswith("|"):
            yield from ((number, _clean(cell)) for cell in line.strip("|").split("|"))
            line = ""
        if not line or re.match(r"([-*+#]|\d+\.)\s", line):
            if paragraph:
                yield start, _clean(" ".join(paragraph))
            paragraph, start = [], number
        if line:
            start = start if paragraph else number
            paragraph.append(re.sub(r"^([-*+#]+|\d+\.)\s+", "", line))


def _python(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings without their examples, and the texts of errors, warnings and options' help."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            doc := ast.get_docstring(node, clean=True)
        ):
            prose = re.sub(r"(?m)^\s*>>>(.*\n?)(^(?!\s*$).*\n?)*", "\n", doc + "\n")
            prose = re.sub(r"(?m)::\n\n((?: +.*)?\n)+", "\n\n", prose)  # blocks of formulas
            line = node.body[0].lineno
            for text in re.split(r"\n\s*\n|\n(?=\s*[-*] )|\n(?=\w+(?:, \w+)* : )|(?<=\w) : ", prose):
                yield line, _clean(" ".join(text.split()))
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _strings(node.exc.args)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "warn":
                yield from _strings(node.args)
            yield from _strings([word.value for word in node.keywords if word.arg in ("help", "remedy", "epilog")])


def _strings(nodes: list[ast.expr]) -> Iterator[tuple[int, str]]:
    inside: set[int] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.JoinedStr):
                inside |= {id(piece) for piece in ast.walk(part)}
                yield (
                    part.lineno,
                    _clean("".join(str(v.value) if isinstance(v, ast.Constant) else "`x`" for v in part.values)),
                )
            elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inside:
                yield part.lineno, _clean(part.value)


def _clean(text: str) -> str:
    text = re.sub(r"`+[^`]*`+(\{[^}]*\})?|\$[^$]+\$", "code", text)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).strip()


def _is_participle(node: ast.FunctionDef) -> bool:
    if any(
        getattr(mark, "id", getattr(mark, "attr", "")) in ("property", "cached_property")
        for mark in node.decorator_list
    ):
        return False  # an attribute may be an adjective
    name = node.name.strip("_")
    return bool(IRREGULAR.fullmatch(name)) or (name.endswith("ed") and "_" not in name and name not in NOT_PARTICIPLES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
