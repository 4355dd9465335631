"""Published sizes of well-known benchmarks: the items of the split that is evaluated."""

import re
from typing import Final, NamedTuple

_HUGGING_FACE: Final = "https://huggingface.co/datasets/"
_GITHUB: Final = "https://github.com/"
_EVALSCOPE: Final = "https://evalscope.readthedocs.io/en/latest/benchmarks/"
_GPQA: Final = "https://arxiv.org/abs/2311.12022"


class Published(NamedTuple):
    """A benchmark as its authors published it."""

    name: str
    items: int
    split: str
    source: str  # the dataset card, repository, paper or documentation page that states the size
    aliases: tuple[str, ...] = ()  # other names in use
    clusters: tuple[tuple[str, int], ...] | None = None  # items of each category, where boards average over categories


def published(benchmark: str) -> Published | None:
    """Return the published benchmark of a name, or None; case and the kind of separator do not matter.

    >>> published("MMLU-Pro").items, published("my-bench")
    (12032, None)
    """
    return _BY_NAME.get(_key(benchmark))


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9+]+", "_", name.lower()).strip("_")


def _card(name: str, items: int, split: str, dataset: str, *aliases: str) -> Published:
    return Published(name, items, split, _HUGGING_FACE + dataset, aliases)


def _repository(name: str, items: int, split: str, repository: str, *aliases: str) -> Published:
    return Published(name, items, split, _GITHUB + repository, aliases)


_MMLU_PRO: Final = (
    ("biology", 717), ("business", 789), ("chemistry", 1_132), ("computer science", 410), ("economics", 844), ("engineering", 969),
    ("health", 818), ("history", 381), ("law", 1_101), ("math", 1_351), ("other", 924), ("philosophy", 499), ("physics", 1_299),
    ("psychology", 798),
)  # fmt: skip

# Only sizes that the source states for one split, and only names that mean one size. Omitted under their plain names: benchmarks whose size
# depends on a version or a harness (DROP, TriviaQA, LiveCodeBench, HLE; TruthfulQA with 817 or 790 questions; MBPP with 974, 500 or 427
# and MBPP+ with 399 or 378 problems; ASDiv with 2,305 or 2,096; SWE-bench, which also names its Verified part), on the unit (MT-Bench,
# CoQA, MultiRC), or on the split (SQuAD, COPA, MNLI, SST-2, MRPC, ToxiGen).
CATALOGUE: Final = (
    # knowledge and reasoning
    _card("mmlu", 14_042, "test", "cais/mmlu", "hendrycks_mmlu"),
    _card("mmlu_pro", 12_032, "test", "TIGER-Lab/MMLU-Pro", "leaderboard_mmlu_pro")._replace(clusters=_MMLU_PRO),
    _card("arc_challenge", 1_172, "test", "allenai/ai2_arc", "arc_c"),
    _card("arc_easy", 2_376, "test", "allenai/ai2_arc", "arc_e"),
    Published("gpqa_diamond", 198, "train", _GPQA, ("leaderboard_gpqa_diamond",)),
    Published("gpqa_main", 448, "train", _GPQA, ("leaderboard_gpqa_main",)),
    Published("gpqa_extended", 546, "train", _GPQA, ("leaderboard_gpqa_extended",)),
    _card("truthfulqa_mc1", 817, "validation", "truthfulqa/truthful_qa"),
    _card("truthfulqa_mc2", 817, "validation", "truthfulqa/truthful_qa"),
    _card("truthfulqa_gen", 817, "validation", "truthfulqa/truthful_qa"),
    _repository("bbh", 6_511, "test", "suzgunmirac/BIG-Bench-Hard", "big_bench_hard"),
    Published("musr", 756, "all", _EVALSCOPE + "musr.html", ("leaderboard_musr",)),
    Published("simpleqa", 4_326, "test", _EVALSCOPE + "simple_qa.html"),
    _card("nq_open", 3_610, "validation", "google-research-datasets/nq_open"),
    _card("webqs", 2_032, "test", "stanfordnlp/web_questions", "web_questions"),
    _repository("ceval_valid", 1_346, "val", "hkust-nlp/ceval", "ceval_val"),
    _card("medqa_4options", 1_273, "test", "GBaker/MedQA-USMLE-4-options", "medqa_usmle"),
    _card("medmcqa", 4_183, "validation", "openlifescienceai/medmcqa"),
    _repository("logiqa", 651, "test", "lgw863/LogiQA-dataset"),
    _card("race_high", 3_498, "test", "ehovy/race"),
    _card("race_middle", 1_436, "test", "ehovy/race"),
    # common sense and language
    _card("hellaswag", 10_042, "validation", "Rowan/hellaswag"),
    _card("winogrande", 1_267, "validation", "allenai/winogrande"),
    _card("piqa", 1_838, "validation", "ybisk/piqa"),
    _card("social_iqa", 1_954, "validation", "allenai/social_i_qa", "siqa", "social_i_qa"),
    _card("openbookqa", 500, "test", "allenai/openbookqa", "obqa"),
    _card("commonsense_qa", 1_221, "validation", "tau/commonsense_qa", "commonsenseqa"),
    _card("sciq", 1_000, "test", "allenai/sciq"),
    _card("swag", 20_006, "validation", "allenai/swag"),
    _card("lambada_openai", 5_153, "test", "EleutherAI/lambada_openai"),
    _card("boolq", 3_270, "validation", "google/boolq"),
    _card("squad_v1", 10_570, "validation", "rajpurkar/squad"),
    _card("squad_v2", 11_873, "validation", "rajpurkar/squad_v2", "squadv2"),
    _card("wic", 638, "validation", "aps/super_glue"),
    _card("rte", 277, "validation", "nyu-mll/glue"),
    _card("cola", 1_043, "validation", "nyu-mll/glue"),
    _card("qqp", 40_430, "validation", "nyu-mll/glue"),
    _card("qnli", 5_463, "validation", "nyu-mll/glue"),
    _card("mnli_matched", 9_815, "validation_matched", "nyu-mll/glue"),
    _card("mnli_mismatched", 9_832, "validation_mismatched", "nyu-mll/glue", "mnli_mismatch"),
    _card("wnli", 71, "validation", "nyu-mll/glue"),
    _card("anli_r1", 1_000, "test", "facebook/anli"),
    _card("anli_r2", 1_000, "test", "facebook/anli"),
    _card("anli_r3", 1_200, "test", "facebook/anli"),
    # mathematics
    _card("gsm8k", 1_319, "test", "openai/gsm8k", "gsm8k_cot"),
    _card("hendrycks_math", 5_000, "test", "EleutherAI/hendrycks_math", "minerva_math"),
    _repository("math_500", 500, "test", "openai/prm800k", "math500"),
    _card("mathqa", 2_985, "test", "allenai/math_qa", "math_qa"),
    _card("aqua_rat", 254, "test", "deepmind/aqua_rat"),
    _card("aime_2024", 30, "train", "HuggingFaceH4/aime_2024", "aime24", "aime2024"),
    _repository("mathvista_testmini", 1_000, "testmini", "lupantech/MathVista"),
    # code
    _card("humaneval", 164, "test", "openai/openai_humaneval"),
    Published("humaneval_plus", 164, "test", _EVALSCOPE + "humaneval_plus.html", ("humaneval+", "humanevalplus")),
    _repository("cruxeval_o", 800, "test", "facebookresearch/cruxeval"),
    _repository("cruxeval_i", 800, "test", "facebookresearch/cruxeval"),
    _repository("bigcodebench", 1_140, "all", "bigcode-project/bigcodebench"),
    _repository("bigcodebench_hard", 148, "hard", "bigcode-project/bigcodebench"),
    _repository("swe_bench_lite", 300, "test", "SWE-bench/SWE-bench", "swebench_lite"),
    _repository("swe_bench_verified", 500, "test", "SWE-bench/SWE-bench", "swebench_verified"),
    # instructions, chat, images
    _card("ifeval", 541, "train", "google/IFEval", "leaderboard_ifeval"),
    _repository("alpaca_eval", 805, "eval", "tatsu-lab/alpaca_eval", "alpacaeval"),
    _repository("wildbench", 1_024, "test", "allenai/WildBench"),
    _repository("mmmu_val", 900, "validation", "MMMU-Benchmark/MMMU"),
)

_BY_NAME: Final = {_key(name): entry for entry in CATALOGUE for name in (entry.name, *entry.aliases)}
