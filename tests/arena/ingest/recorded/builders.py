"""Small records of either program, written by hand, and ways to break them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JUDGES = ["maker/judge-a", "other/judge-b"]


def vote(model: str, word: str | None, **changes: Any) -> dict[str, Any]:
    base = {"model": model, "vote": word, "flipped": word is None, "completed": True, "replacement": False}
    return {**base, "explanation": f"{model} says so.", **changes}


def round_line(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 3,
        "prompt_hash": f"hash-{number}",
        "prompt_text": f"Question {number}?",
        "prompt_category": "letters",
        "prompt_metadata": {"length": "short"},
        "model_a": "ada",
        "model_b": "bram",
        "response_a": f"Ada answers {number} at length.",
        "response_b": f"Bram answers {number}.",
        "judge_votes": [vote(JUDGES[0], "A"), vote(JUDGES[1], "A")],
        "majority_verdict": "A",
        "winner": "ada",
        "tokens_a_in": 10,
        "tokens_a_out": 200,
        "tokens_a_reasoning": 0,
        "tokens_b_in": 10,
        "tokens_b_out": 100,
        "tokens_b_reasoning": 0,
        "finish_reason_a": "stop",
        "finish_reason_b": "length",
        "ttft_a_ms": 100,
        "duration_a_ms": 900,
        "ttft_b_ms": 90,
        "duration_b_ms": 800,
        "judge_tokens_in": 1000,
        "judge_tokens_out": 50,
        "error": None,
        "timestamp": 1784289194.5 + number,
        "tournament_id": "run-1",
        "match_id": "M1",
        "round_number": number,
        **changes,
    }


def manifest(**changes: Any) -> dict[str, Any]:
    rows = [
        {"role": "candidate", "model_id": "maker/ada", "price_in": 1.0, "price_out": 2.0},
        {"role": "candidate", "model_id": "maker/bram", "price_in": 10.0, "price_out": 20.0},
        {"role": "judge", "model_id": JUDGES[0], "price_in": 2.0, "price_out": 4.0},
        {"role": "judge", "model_id": JUDGES[1], "price_in": 4.0, "price_out": 8.0},
    ]
    return {
        "tournament_id": "run-1",
        "started_at": 1784289186.2,
        "finished_at": 1784291743.9,
        "seed": 42,
        "candidates": {
            "ada": {"model": "maker/ada", "reasoning": "vendor-default"},
            "bram": {"model": "maker/bram", "reasoning": {"thinking": {"type": "disabled"}}},
        },
        "judges": JUDGES,
        "replacement_judges": ["third/judge-c"],
        "min_successful_judges": 2,
        "preflight": {"counts": {"matches": 1, "rounds_per_match": 3}, "cost_ceiling": {"rows": rows}},
        "fleiss": {"kappa": 0.5},
        **changes,
    }


def write_log(folder: Path, *rounds: Any, beside: dict[str, Any] | None = None, name: str = "battles") -> Path:
    lines = [one if isinstance(one, str) else json.dumps(one) for one in rounds]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if beside is not None:
        (folder / f"{name}.run.json").write_text(json.dumps(beside), encoding="utf-8")
    return path


# JuryArena ---------------------------------------------------------------------------------------------------
MODELS = ("lab/ada", "lab/bram")
SKIPPED = {"skipped": True, "reason": "CONTEXT_OVERFLOW", "message": "too long"}


def judged(word: str) -> str:
    return json.dumps({"A": "short", "B": "long", "reason": "so", "winner": word})


def match_object(number: int, **changes: Any) -> dict[str, Any]:
    a, b = MODELS if number % 2 == 0 else MODELS[::-1]
    base = {
        "match_id": f"match_{number:05d}",
        "sample_id": "s1",
        "model_a": a,
        "model_b": b,
        "winner": a,
        "judge_models": list(JUDGES),
        "judge_details": {
            JUDGES[0]: {"winner": a, "output": judged("A")},
            JUDGES[1]: {"winner": a, "output": judged("A")},
        },
        "created_at": "2026-03-11T16:14:49.753166",
    }
    return {**base, **changes}


def trial(model: str, output: Any = None, **changes: Any) -> dict[str, Any]:
    base = {"output": output or f"Answer of {model}", "tokens": {"input": 5, "output": 50}, "cost_usd": 0.001}
    return {**base, "latency_ms": 400.5, "params": {}, **changes}


SAMPLE = {"input": {"messages": [{"role": "user", "content": "Which one?"}]}, "usage_output": None}
CONFIG = {
    "models": {"trials": list(MODELS), "judges": list(JUDGES)},
    "execution": {"seed": 7, "match_batch_size": 2},
    "stopping": {"max_matches": 3},
    "selection": {"strategy": "glicko2"},
    "judge_output_language": "ja",
}


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")


def write_static(folder: Path, matches: list[dict[str, Any]], trials: dict[str, Any] | None = None) -> Path:
    known = {model: trial(model) for model in MODELS} | (trials or {})
    for number, match in enumerate(matches):
        detail = {
            "id": f"id-{number}",
            "match": match,
            "sampleInfo": SAMPLE,
            "trialA": known.get(match["model_a"]),
            "trialB": known.get(match["model_b"]),
        }
        write(folder / "matches" / "detail" / f"id-{number}.json", detail)
    write(folder / "matches" / "eval-1.json", {"matches": [{"id": f"id-{n}"} for n in range(len(matches))]})
    write(folder / "samples" / "set-1.json", {"samples": [{"id": "s1", "info": SAMPLE}]})
    benchmark = {"name": "spring", "datasetName": "letters", "config": CONFIG, "createdAt": "2026-03-11T05:58:32Z"}
    write(folder / "evaluations" / "eval-1" / "index.json", {"benchmark": benchmark, "finalStep": {"step": 1}})
    return folder


def write_worker(folder: Path, matches: list[dict[str, Any]], trials: dict[str, Any] | None = None) -> Path:
    """A data set with one benchmark, as the worker leaves it."""
    run = folder / "benchmarks" / "spring"
    for number, match in enumerate(matches):
        write(run / "arena_matches" / f"{number:05d}.json", match)
    for model, value in ({model: trial(model) for model in MODELS} | (trials or {})).items():
        write(run / "trials" / "s1" / model / "trial.json", value)
    write(folder / "samples" / "s1" / "info.json", SAMPLE)
    write(run / "config.yaml", "execution:\n  seed: 7\nstopping: {max_matches: 3}\njudge_output_language: en\n")
    write(run / "ratings" / "step001.json", {"step": 1, "cost": {"judge_total_usd": 0.5}})
    return folder
