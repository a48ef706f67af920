"""Values published or computed by others, read from the reference data beside the checkout."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from ratings.engine.board import rate
from ratings.engine.bootstrap import bootstrap
from ratings.engine.bradley_terry import fit
from ratings.engine.comparisons import PairCounts
from ratings.engine.intervals import fisher
from ratings.engine.scale import to_display
from tests.engine.helpers import from_cells, quickstart, shared_file, shared_json

CONNECTED = [
    "six_models",
    "sparse_chain",
    "separation",
    "same_without_isolated",
    "two_votes_per_pair",
    "large_counts",
    "fifty_models_1m_votes",
    "demo_seed_240",
]
ETA_ON_ITS_FLOOR = ["one_vote", "no_ties", "full_separation_chain"]
SPLIT = ["isolated_model", "two_components"]
ALL_TIES = ["all_ties_one_pair", "all_ties_triangle"]


def case(name: str) -> tuple[dict[str, Any], PairCounts]:
    found = shared_json("reference/omniarena_reference.json")["bt"][name]
    cells = found["pairs"]
    if isinstance(cells, str):
        lines = shared_file(f"reference/{cells}").read_text().split()[1:]
        cells = [[int(value) for value in line.split(",")] for line in lines]
    return found, from_cells(found["n_models"], cells)


def test_every_case_is_covered() -> None:
    names = shared_json("reference/omniarena_reference.json")["bt"]

    assert sorted(names) == sorted(CONNECTED + ETA_ON_ITS_FLOOR + SPLIT + ALL_TIES)


@pytest.mark.parametrize("name", CONNECTED + ETA_ON_ITS_FLOOR + SPLIT)
def test_exact_optimum(name: str) -> None:
    found, counts = case(name)
    fitted = fit(counts, ties="rao_kupper", ridge=found["ridge"])

    assert fitted.converged
    np.testing.assert_allclose(fitted.theta, found["exact"]["ratings"], atol=1e-8)
    assert fitted.eta == pytest.approx(found["exact"]["eta"], abs=1e-8)
    assert -fitted.objective == pytest.approx(found["exact"]["penalised_loglik"], rel=1e-12)
    assert fitted.components.tolist() == found["components"]


@pytest.mark.parametrize("name", CONNECTED)
def test_exact_errors_of_connected_boards(name: str) -> None:
    found, counts = case(name)
    errors = fisher(fit(counts, ties="rao_kupper", ridge=found["ridge"]))

    np.testing.assert_allclose(errors.std_error, found["exact"]["stderr"], atol=1e-8)


@pytest.mark.parametrize("name", ETA_ON_ITS_FLOOR)
def test_errors_differ_where_the_reference_keeps_eta_in_the_hessian_at_its_floor(name: str) -> None:
    found, counts = case(name)
    fitted = fit(counts, ties="rao_kupper", ridge=found["ridge"])
    n = counts.n_candidates
    inverse = np.linalg.inv(fitted.hessian)[:n, :n]
    contrast = np.eye(n) - 1 / n
    theirs = np.sqrt(np.diag(contrast @ inverse @ contrast))

    np.testing.assert_allclose(theirs, found["exact"]["stderr"], rtol=1e-6)
    assert (fisher(fitted).std_error < theirs).all()


@pytest.mark.parametrize("name", SPLIT)
def test_errors_differ_where_the_reference_projects_over_all_components(name: str) -> None:
    found, counts = case(name)
    errors = fisher(fit(counts, ties="rao_kupper", ridge=found["ridge"])).std_error

    met = counts.games > 0
    assert (np.array(found["exact"]["stderr"])[met] > 10 * errors[met]).all()
    if name == "isolated_model":
        alone, _ = case("same_without_isolated")
        np.testing.assert_allclose(errors[:3], alone["exact"]["stderr"], atol=1e-8)


@pytest.mark.parametrize("name", ALL_TIES)
def test_all_ties_agree_in_all_but_eta(name: str) -> None:
    found, counts = case(name)
    fitted = fit(counts, ties="rao_kupper", ridge=found["ridge"])

    np.testing.assert_allclose(fitted.theta, found["exact"]["ratings"], atol=1e-8)
    np.testing.assert_allclose(fisher(fitted).std_error, found["exact"]["stderr"], rtol=1e-6)
    assert fitted.eta_unbounded


def test_pinned_reference_candidate() -> None:
    pinned = shared_json("reference/omniarena_reference.json")["reference_anchor"]
    found, counts = case(pinned["case"])
    fitted = fit(counts, ties="rao_kupper", ridge=found["ridge"], reference=pinned["reference"])

    np.testing.assert_allclose(fitted.theta, pinned["ratings"], atol=2e-5)
    np.testing.assert_allclose(fisher(fitted).std_error, pinned["stderr"], atol=2e-5)


def votes(name: str) -> PairCounts:
    if name == "e_arena_129x1670k":
        with shared_file("reference/votes/arena_129_pairs.csv").open() as file:
            rows = list(csv.DictReader(file))
        names = sorted({row[side] for row in rows for side in ("first", "second")})
        index = {name: position for position, name in enumerate(names)}
        cells = [
            (
                index[row["first"]],
                index[row["second"]],
                int(row["first_wins"]),
                int(row["second_wins"]),
                int(row["ties"]) + int(row["both_bad"]),
            )
            for row in rows
        ]
        return from_cells(len(names), cells)
    with np.load(shared_file(f"reference/votes/{name}.npz"), allow_pickle=False) as data:
        outcome = np.minimum(data["winner"], 2)  # both_bad is a tie
        return PairCounts.from_codes(len(data["names"]), data["model_a"], data["model_b"], outcome)


@pytest.mark.parametrize("name", ["a_20x20k", "e_arena_129x1670k"])
def test_half_win_optimum_and_errors_on_large_votes(name: str) -> None:
    exact = shared_json("reference/arena_rank_reference.json")["results"][name]["exact_newton_bt"]
    board = rate(votes(name))

    assert board.ridge == 0
    np.testing.assert_allclose(board.rating, exact["ratings"], atol=1e-5)
    np.testing.assert_allclose(board.std_error, exact["fisher_se"], atol=1e-5)
    assert board.fit.log_likelihood == pytest.approx(exact["loglik"], rel=1e-11)


@pytest.mark.parametrize("name", ["a_20x20k", "e_arena_129x1670k"])
def test_tie_model_agrees_with_an_unexact_peer_within_its_tolerance(name: str) -> None:
    peer = shared_json("reference/arena_rank_reference.json")["results"][name]["omni.fisher"]
    board = rate(votes(name), ties="rao_kupper", ridge=0.01)

    assert board.fit.eta == pytest.approx(peer["eta"], abs=1e-4)
    np.testing.assert_allclose(board.rating, peer["ratings"], atol=0.05)
    np.testing.assert_allclose(board.lower, peer["lower"], atol=0.05)


@pytest.mark.parametrize("name", ["a_20x20k", "e_arena_129x1670k"])
def test_sandwich_errors_of_single_votes_on_large_votes(name: str) -> None:
    results = shared_json("reference/arena_rank_reference.json")["results"][name]
    counts = votes(name)
    board = rate(counts, errors="robust")

    np.testing.assert_allclose(board.std_error, results["exact_newton_bt"]["sandwich_se"], atol=1e-5)
    # arena-rank stops earlier and rounds; its half widths are within 1.2 % of the exact ones on average.
    peer = results["arena_rank.sandwich"]
    half = (np.array(peer["upper"]) - np.array(peer["lower"])) / 2
    ours = (board.upper - board.lower) / 2
    np.testing.assert_allclose((half / ours).mean(), peer["half_width_over_exact_sandwich_mean"], rtol=1e-4)
    np.testing.assert_allclose(board.rating, peer["ratings"], atol=0.35)
    # Ties are a tenth and a third of these votes, and Fisher's errors are wider for each of them.
    assert (board.std_error < rate(counts).std_error).all()


@pytest.mark.parametrize("peer", ["choix.ilsr_dense", "fastchat.bt"])
def test_peers_without_a_tie_model_agree_within_their_tolerance(peer: str) -> None:
    found = shared_json("reference/arena_rank_reference.json")["results"]["a_20x20k"][peer]

    np.testing.assert_allclose(rate(votes("a_20x20k")).rating, found["ratings"], atol=0.02)


def test_bootstrap_errors_of_the_reference_are_within_chance() -> None:
    published = shared_json("reference/omniarena_reference.json")["bootstrap"]
    found, counts = case(published["case"])
    resampled = bootstrap(fit(counts, ties="rao_kupper", ridge=found["ridge"]), counts)

    # 300 resamples have an error of 4 % in each standard error, 1,000 of 2 %.
    np.testing.assert_allclose(resampled.std_error, published["stderr"], rtol=0.14)
    np.testing.assert_allclose(np.mean(resampled.theta, axis=0), published["mean"], atol=0.03)


def test_quickstart_intervals_agree_in_spirit_with_unfinished_refits() -> None:
    """Refits of 50 sweeps cannot reach what has no optimum; we say open instead of -3000 or 2209."""
    published = shared_json("reference/orq_quickstart.json")["later_rules"]["bootstrap_1000_of_50_sweeps"]
    names, counts = quickstart()
    resampled = bootstrap(fit(counts), counts)

    lower, upper = to_display(resampled.lower), to_display(resampled.upper)
    for index, name in enumerate(names):
        theirs = published[name]
        if name == "gemini-3.1-pro-preview":
            assert (lower[index], theirs[0]) == (-np.inf, -3000)
        if name == "gemini-3.5-flash":
            assert upper[index] == np.inf
        # Where both have an end it is the same side of the rating and of the same order.
        if np.isfinite(lower[index]):
            assert abs(lower[index] - theirs[0]) < 100
        if np.isfinite(upper[index]):
            assert upper[index] < theirs[1] + 10


def test_the_quickstart_ratings_without_a_prior() -> None:
    published = shared_json("reference/orq_quickstart.json")["bradley_terry_half_win_no_ridge"]
    names, counts = quickstart()
    board = rate(counts)

    assert counts.total == 76
    assert board.ridge == 0
    np.testing.assert_allclose(board.rating, [published[name] for name in names], atol=0.01)
    assert not board.held_by_prior.any()


def test_the_quickstart_slice_without_an_optimum_prints_open_ends() -> None:
    published = shared_json("reference/orq_quickstart.json")["category_counts_rated"]
    names, counts = quickstart("general")
    board = rate(counts)

    assert counts.total == published["general"] == 35
    assert board.fit.connectivity.n_groups == 4
    assert board.ridge_by_default
    champion = names.index("gemini-3.5-flash")
    assert counts.losses[champion] == 0
    assert board.upper[champion] == np.inf
    # Those who lost only to others above the core are open above too.
    unbeaten = [names[i] for i in np.flatnonzero(board.open_above)]
    assert unbeaten == [
        "deepseek-chat",
        "gemini-3.5-flash",
        "gpt-5.4",
    ]
    assert not board.open_below.any()
    assert board.held_by_prior.all()
    assert fit(counts).theta[champion] == np.inf
