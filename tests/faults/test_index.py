"""The 25 faults of production, and the tests that cover each. A test that is renamed or removed fails here."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAULTS: dict[str, list[str]] = {
    "NaN and infinity": [
        "faults/test_features.py::test_nan_and_infinity_are_refused_in_fit_and_in_encode",
        "cli/test_bad_input.py::test_features",
        "streams/test_rows.py::test_the_place_of_what_is_not_finite_is_told",
    ],
    "wrong shape, sparse, object": [
        "faults/test_features.py::test_wrong_shapes_and_objects_are_refused",
        "faults/test_features.py::test_sparse_features_are_taken_or_refused_by_name",
    ],
    "python -O": [
        "faults/test_without_asserts.py::test_everything_is_refused_without_asserts",
        "search/test_without_asserts.py::test_wrong_codes_are_refused_without_asserts",
    ],
    "wrong width or dtype of codes": [
        "search/test_index_input.py::test_bad_codes_are_refused_and_nothing_is_added",
        "search/test_stores.py::test_bad_input_is_refused_and_changes_nothing",
        "metrics/test_average_precision.py::test_bad_input_is_refused",
        "cli/test_bad_input.py::test_searches",
    ],
    "12 and 33 bits": [
        "hashers/test_two_step.py::test_any_number_of_bits",
        "bits/test_packing.py::test_round_trip_for_every_number_of_bits",
        "search/test_index.py::test_the_nearest_with_ties_by_id",
        "search/test_stores.py::test_same_neighbors_as_exact_search",
        "persistence/test_onnx.py::test_any_number_of_bits_is_packed_as_encode_packs",
    ],
    "k > n, k = 0, empty index": [
        "search/test_index_input.py::test_bad_numbers_are_refused",
        "cli/test_bad_input.py::test_searches",
    ],
    "radius 0, 1, 2, L against brute force": [
        "search/test_index.py::test_radius_is_inclusive_and_exact_with_every_backend",
        "metrics/test_radius_and_knn.py::test_precision_within_radius",
    ],
    "ties × threads × backends": [
        "search/test_index.py::test_threads_change_nothing",
        "search/test_index.py::test_ties_by_id_from_an_engine_that_breaks_them_otherwise",
        "search/test_index.py::test_all_codes_equal",
        "search/test_stores.py::test_ties_larger_than_what_the_engine_is_asked_for",
    ],
    "batch sizes, strides, order": [
        "hashers/test_two_step.py::test_threads_memory_order_and_batches_never_change_codes",
        "hashers/test_contract.py::test_threads_memory_order_and_batches_never_change_codes",
        "search/test_index.py::test_batches_strides_and_order_of_the_queries_change_nothing",
        "cli/test_fit_and_encode.py::test_formats_and_batches_change_nothing",
    ],
    "seeds × n_jobs × processes": [
        "faults/test_features.py::test_seeds_decide_whatever_the_jobs_threads_and_processes",
        "hashers/test_two_step.py::test_same_seed_same_model_other_seed_other_model",
    ],
    "constant, duplicate, one-class data": [
        "faults/test_features.py::test_features_that_tell_nothing_do_not_crash",
        "faults/test_features.py::test_one_class_is_refused_where_labels_are_needed",
    ],
    "1e200 and 1e-300": [
        "faults/test_features.py::test_what_would_overflow_is_refused",
        "faults/test_features.py::test_tiny_and_large_units_give_finite_margins",
    ],
    "60,000 rows under 2 GB": [
        "faults/test_memory.py::test_sixty_thousand_rows_are_learned_encoded_and_searched_within_two_gigabytes",
        "faults/test_memory.py::test_a_gram_matrix_that_was_asked_for_and_does_not_fit_is_refused",
    ],
    "pickle or malicious file": [
        "persistence/test_faults.py::test_a_pickle_is_refused_and_nothing_runs",
        "persistence/test_faults.py::test_forged_descriptions_are_refused",
        "search/test_index_files.py::test_a_pickle_is_refused_and_not_run",
        "cli/test_bad_input.py::test_models_and_outputs",
    ],
    "truncation at every 1/64": [
        "persistence/test_faults.py::test_truncation",
        "search/test_index_files.py::test_truncation_at_every_sixty_fourth_is_refused",
        "streams/test_rows.py::test_truncation_at_every_sixty_fourth_is_refused",
    ],
    "2,000 byte flips": [
        "persistence/test_faults.py::test_byte_flips_are_all_detected",
        "search/test_index_files.py::test_two_thousand_flipped_bytes_are_all_detected",
    ],
    "lying headers": [
        "persistence/test_faults.py::test_lying_headers_are_refused_before_anything_is_allocated",
        "search/test_index_files.py::test_lying_headers_are_refused",
        "streams/test_rows.py::test_headers_that_lie_are_refused_before_anything_is_allocated",
    ],
    "kill -9 during save": [
        "persistence/test_writing.py::test_kill_during_save_leaves_the_old_model_or_the_new",
        "search/test_index_files.py::test_kills_during_save_leave_the_old_file_or_the_new_one",
    ],
    "disk full": [
        "persistence/test_writing.py::test_a_full_disk_keeps_the_old_model",
        "search/test_index_files.py::test_a_full_disk_leaves_the_old_file_and_no_litter",
        "streams/test_encoding.py::test_a_full_disk_keeps_what_is_done",
    ],
    "concurrent save and read": ["persistence/test_writing.py::test_readers_meanwhile_see_one_model_or_the_other"],
    "newer and older format": [
        "persistence/test_faults.py::test_newer_formats_are_refused_with_a_clear_word",
        "persistence/test_golden.py::test_golden_files_load_and_give_their_codes",
        "persistence/test_golden.py::test_older_formats_are_brought_up_to_date_step_by_step",
    ],
    "killed shard encode": [
        "streams/test_encoding.py::test_kill_9_in_the_middle_and_the_same_command_again",
        "streams/test_encoding.py::test_the_file_is_the_same_however_often_it_was_stopped",
    ],
    "connection lost in the middle of COPY": [
        "search/test_postgres.py::test_a_connection_lost_in_the_middle_of_copy_leaves_nothing",
        "search/test_postgres.py::test_a_killed_process_in_the_middle_of_copy_leaves_nothing",
    ],
    "Ctrl-C and time limit in fit": [
        "cli/test_interrupts.py::test_ctrl_c_in_the_fit_command",
        "cli/test_interrupts.py::test_ctrl_c_in_fit_is_passed_on_and_leaves_no_half_model",
        "cli/test_interrupts.py::test_a_time_limit_ends_inference_with_usable_codes",
    ],
    "bad input of commands, <script> in labels": [
        "cli/test_bad_input.py::test_features",
        "cli/test_bad_input.py::test_labels",
        "cli/test_bad_input.py::test_options_of_fit",
        "experiments/report/test_page.py::test_names_and_labels_are_escaped",
        "cli/test_json_everywhere.py::test_script_in_labels_names_and_title_comes_out_as_text",
    ],
}


@cache
def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8")) if path.exists() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_there_are_25_faults() -> None:
    assert len(FAULTS) == 25


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_has_its_tests(fault: str) -> None:
    assert FAULTS[fault]
    for test in FAULTS[fault]:
        file, _, name = test.partition("::")
        assert name in functions_in(ROOT / "tests" / file), f"{fault}: there is no {test}"
