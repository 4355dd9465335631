"""Published sizes of well-known benchmarks: the items of the split that is evaluated."""

import re
from typing import Final, NamedTuple

_HUGGING_FACE: Final = "https://huggingface.co/datasets/"


class Published(NamedTuple):
    """A benchmark as its authors published it.

    Attributes
    ----------
    name : str
    items : int
    split : str
    source : str
        The dataset card or the repository that states the size.
    aliases : tuple of str
        Other names in use.
    """

    name: str
    items: int
    split: str
    source: str
    aliases: tuple[str, ...] = ()


def published(benchmark: str) -> Published | None:
    """Return the published benchmark of a name, or None; case and the kind of separator do not matter.

    Examples
    --------
    >>> published("MMLU-Pro").items, published("my-bench")
    (12032, None)
    """
    return _BY_NAME.get(_key(benchmark))


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9+]+", "_", name.lower()).strip("_")


def _card(name: str, items: int, split: str, dataset: str, *aliases: str) -> Published:
    return Published(name, items, split, _HUGGING_FACE + dataset, aliases)


# Only sizes that a dataset card states for one split, and only names that mean no other benchmark. Benchmarks whose size depends on a
# version or on a harness (DROP, TriviaQA, LiveCodeBench, HLE) are omitted.
CATALOGUE: Final = (
    # knowledge and reasoning
    _card("mmlu", 14_042, "test", "cais/mmlu", "hendrycks_mmlu"),
    _card("mmlu_pro", 12_032, "test", "TIGER-Lab/MMLU-Pro", "leaderboard_mmlu_pro"),
    _card("arc_challenge", 1_172, "test", "allenai/ai2_arc", "arc_c"),
    _card("arc_easy", 2_376, "test", "allenai/ai2_arc", "arc_e"),
    _card("gpqa_diamond", 198, "train", "Idavidrein/gpqa", "leaderboard_gpqa_diamond"),
    _card("gpqa_main", 448, "train", "Idavidrein/gpqa", "leaderboard_gpqa_main"),
    _card("gpqa_extended", 546, "train", "Idavidrein/gpqa", "leaderboard_gpqa_extended"),
    _card(
        "truthfulqa", 817, "validation", "truthfulqa/truthful_qa", "truthfulqa_mc1", "truthfulqa_mc2", "truthfulqa_gen"
    ),
    _card("bbh", 6_511, "test", "lukaemon/bbh", "big_bench_hard"),
    _card("musr", 756, "all", "TAUR-Lab/MuSR", "leaderboard_musr"),
    _card("simpleqa", 4_326, "test", "basicv8vc/SimpleQA"),
    _card("nq_open", 3_610, "validation", "google-research-datasets/nq_open"),
    _card("webqs", 2_032, "test", "stanfordnlp/web_questions", "web_questions"),
    _card("ceval_valid", 1_346, "val", "ceval/ceval-exam", "ceval_val"),
    _card("medqa_4options", 1_273, "test", "GBaker/MedQA-USMLE-4-options", "medqa_usmle"),
    _card("medmcqa", 4_183, "validation", "openlifescienceai/medmcqa"),
    _card("logiqa", 651, "test", "lucasmccabe/logiqa"),
    _card("race_high", 3_498, "test", "ehovy/race"),
    _card("race_middle", 1_436, "test", "ehovy/race"),
    # common sense and language
    _card("hellaswag", 10_042, "validation", "Rowan/hellaswag"),
    _card("winogrande", 1_267, "validation", "allenai/winogrande"),
    _card("piqa", 1_838, "validation", "ybisk/piqa"),
    _card("social_iqa", 1_954, "validation", "allenai/social_i_qa", "siqa", "social_i_qa"),
    _card("openbookqa", 500, "test", "allenai/openbookqa", "obqa"),
    _card("commonsense_qa", 1_221, "validation", "tau/commonsense_qa", "commonsenseqa", "csqa"),
    _card("sciq", 1_000, "test", "allenai/sciq"),
    _card("swag", 20_006, "validation", "allenai/swag"),
    _card("lambada_openai", 5_153, "test", "EleutherAI/lambada_openai"),
    _card("boolq", 3_270, "validation", "google/boolq"),
    _card("coqa", 500, "validation", "stanfordnlp/coqa"),
    _card("squad", 10_570, "validation", "rajpurkar/squad", "squad_v1"),
    _card("squad_v2", 11_873, "validation", "rajpurkar/squad_v2", "squadv2"),
    _card("copa", 100, "validation", "aps/super_glue"),
    _card("multirc", 4_848, "validation", "aps/super_glue"),
    _card("wic", 638, "validation", "aps/super_glue"),
    _card("rte", 277, "validation", "nyu-mll/glue"),
    _card("cola", 1_043, "validation", "nyu-mll/glue"),
    _card("sst2", 872, "validation", "nyu-mll/glue"),
    _card("mrpc", 408, "validation", "nyu-mll/glue"),
    _card("qqp", 40_430, "validation", "nyu-mll/glue"),
    _card("qnli", 5_463, "validation", "nyu-mll/glue"),
    _card("mnli", 9_815, "validation_matched", "nyu-mll/glue"),
    _card("mnli_mismatch", 9_832, "validation_mismatched", "nyu-mll/glue"),
    _card("wnli", 71, "validation", "nyu-mll/glue"),
    _card("anli_r1", 1_000, "test", "facebook/anli"),
    _card("anli_r2", 1_000, "test", "facebook/anli"),
    _card("anli_r3", 1_200, "test", "facebook/anli"),
    # mathematics
    _card("gsm8k", 1_319, "test", "openai/gsm8k", "gsm8k_cot"),
    _card("hendrycks_math", 5_000, "test", "EleutherAI/hendrycks_math", "minerva_math"),
    _card("math_500", 500, "test", "HuggingFaceH4/MATH-500", "math500"),
    _card("mathqa", 2_985, "test", "allenai/math_qa", "math_qa"),
    _card("aqua_rat", 254, "test", "deepmind/aqua_rat"),
    _card("asdiv", 2_305, "validation", "EleutherAI/asdiv"),
    _card("aime_2024", 30, "train", "HuggingFaceH4/aime_2024", "aime24", "aime2024"),
    _card("mathvista_testmini", 1_000, "testmini", "AI4Math/MathVista"),
    # code
    _card("humaneval", 164, "test", "openai/openai_humaneval"),
    _card("humaneval_plus", 164, "test", "evalplus/humanevalplus", "humaneval+", "humanevalplus"),
    _card("mbpp", 500, "test", "google-research-datasets/mbpp"),
    _card("mbpp_plus", 378, "test", "evalplus/mbppplus", "mbpp+", "mbppplus"),
    _card("cruxeval_o", 800, "test", "cruxeval-org/cruxeval"),
    _card("cruxeval_i", 800, "test", "cruxeval-org/cruxeval"),
    _card("bigcodebench", 1_140, "v0.1.4", "bigcode/bigcodebench"),
    _card("bigcodebench_hard", 148, "v0.1.4", "bigcode/bigcodebench-hard"),
    _card("swe_bench", 2_294, "test", "princeton-nlp/SWE-bench", "swebench"),
    _card("swe_bench_lite", 300, "test", "princeton-nlp/SWE-bench_Lite", "swebench_lite"),
    _card("swe_bench_verified", 500, "test", "princeton-nlp/SWE-bench_Verified", "swebench_verified"),
    # instructions, chat, images
    _card("ifeval", 541, "train", "google/IFEval", "leaderboard_ifeval"),
    _card("alpaca_eval", 805, "eval", "tatsu-lab/alpaca_eval", "alpacaeval"),
    _card("mt_bench", 80, "train", "HuggingFaceH4/mt_bench_prompts", "mtbench"),
    _card("wildbench", 1_024, "test", "allenai/WildBench"),
    _card("mmmu_val", 900, "validation", "MMMU/MMMU"),
    _card("toxigen", 940, "test", "toxigen/toxigen-data"),
)

_BY_NAME: Final = {_key(name): entry for entry in CATALOGUE for name in (entry.name, *entry.aliases)}
