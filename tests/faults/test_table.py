"""Every fault that the pack promises to stand, and the test that injects it."""

import ast
from functools import cache

import pytest

from tests.end_to_end.running import ROOT

# (where, what is injected, what must hold, by which test; the folder of tests is left out)
FAULTS = [
    ("judge", "429, 408, 5xx, hang, drip, cut", "asked again in one layer, within the timeout",
     "judging/test_client.py::test_what_passes_is_tried_again_in_one_layer"),
    ("judge", "400, 401, 402, 403, 404, 422, quota, filter", "asked once",
     "judging/test_client.py::test_what_does_not_pass_is_asked_once"),
    ("judge", "every other status, redirects as well", "no verdict, and a reason",
     "faults/test_judge.py::test_no_status_is_a_verdict"),
    ("judge", "bodies of any shape, 1 MB", "read as a text or as none",
     "judging/test_client.py::test_every_body_is_read_as_a_text_or_as_none"),
    ("judge", "a fault that passes, then one that stays", "one unjudged item, judged in the next run",
     "judging/test_pool.py::test_a_fault_costs_one_verdict_or_none"),
    ("judge", "key, model or quota refused", "judging ends with one message",
     "judging/test_pool.py::test_an_unusable_judge_ends_judging_with_one_message"),
    ("judge", "it hangs for good, or is gone", "judging ends after 20 calls with one message",
     "faults/test_judge.py::test_a_silent_judge_ends_judging_with_one_message"),
    ("judge", "silences between replies", "judging goes on",
     "faults/test_judge.py::test_any_reply_between_silences_is_a_sign_of_life"),
    ("judge", "another model's name in replies", "it is kept with the verdict",
     "judging/test_pool.py::test_a_verdict_is_on_disk_when_its_future_is_done"),
    ("judge", "10,000 unreadable replies in a row", "the run ends, nothing is kept of them",
     "faults/test_judge.py::test_ten_thousand_unreadable_replies_end_and_leave_nothing_behind"),
    ("judge", "long hostile replies", "read in linear time",
     "judging/test_replies.py::test_a_long_reply_is_read_in_linear_time"),
    ("judge", "a clock that goes back", "the same verdicts",
     "faults/test_judge.py::test_a_clock_that_goes_back_changes_no_verdict"),
    ("judge", "a third of all calls fail", "after some `score` the same numbers, each verdict paid for once",
     "results/test_resume.py::test_a_judge_that_fails_often_ends_in_the_same_numbers"),
    ("model", "requests fail", "no_answer, never a zero",
     "end_to_end/test_in_process.py::test_failed_requests_are_no_answer"),
    ("model", "it fails within a conversation", "the rest of that dialogue is no_answer, all else is scored",
     "end_to_end/test_conversations.py::test_a_model_that_fails_in_the_middle_loses_the_rest_of_that_dialogue_alone"),
    ("model", "it fails within a program of several steps", "the question is no_answer",
     "end_to_end/test_scvbench.py::test_a_failure_costs_what_it_hits"),
    ("disk", "full while verdicts are written", "no line is torn, all is written later",
     "judging/test_verdicts.py::test_a_full_disk_tears_no_line"),
    ("disk", "full while verdicts are written, for real", "verdicts count and are written later",
     "judging/test_verdicts.py::test_a_file_size_limit_is_a_full_disk"),
    ("disk", "no run record can be written", "said once, the run goes on",
     "results/test_records.py::test_a_file_in_the_way_is_said_once_and_stops_nothing"),
    ("disk", "full while a clip is made", "an error that names the remedy, nothing half there",
     "media/test_clips.py::test_full_disk"),
    ("disk", "full while a dataset is written", "an error that names the remedy, the old dataset stays",
     "faults/test_disk.py::test_a_disk_that_fills_up_while_a_dataset_is_written_leaves_the_old_one"),
    ("disk", "HOME takes nothing", "named before the run, by prepare and for clips",
     "faults/test_disk.py::test_a_home_that_takes_nothing_is_named_before_anything_is_done"),
    ("disk", "HOME takes nothing, dataset on the Hub", "named",
     "faults/test_disk.py::test_a_home_that_takes_nothing_is_named_when_a_video_comes_from_the_hub"),
    ("disk", "HOME without locks", "clips are made and used",
     "faults/test_disk.py::test_without_locks_in_home_clips_are_made_and_used"),
    ("disk", "HOME or HF_HOME without locks", "downloads go on, or the message says what to do",
     "faults/test_disk.py::test_without_locks_the_hub_is_used_or_the_message_says_what_to_do"),
    ("video", "damage in the middle", "the frames that can be decoded",
     "media/test_clips.py::test_damage_in_the_middle"),
    ("video", "truncated", "what is there, or an error", "media/test_clips.py::test_truncated_mp4"),
    ("video", "no video, no frame, no file", "an error with file, codec, reason and remedy",
     "media/test_clips.py::test_errors_name_file_codec_reason_and_remedy"),
    ("video", "decoding hangs", "ended, and told at once from then on",
     "media/test_clips.py::test_hanging_decode_is_ended"),
    ("video", "the decoder crashes", "reported", "media/test_clips.py::test_crashing_decoder_is_reported"),
    ("video", "a clip is damaged", "made again", "media/test_clips.py::test_damaged_clip_is_made_again"),
    ("video", "missing", "the run stops, or goes on without",
     "end_to_end/test_in_process.py::test_missing_videos_stop_the_run_or_are_skipped"),
    ("video", "cannot be opened", "the run stops before it begins",
     "test_checks.py::test_a_video_that_cannot_be_opened_stops_the_run"),
    ("video", "it fails while lmms-eval generates", "the process ends with a message and status 1",
     "faults/test_video.py::test_it_ends_the_process_where_an_error_would_be_passed_over"),
    ("video", "a whole header before frames that no rank can decode", "the run of all ranks ends with status 1",
     "end_to_end/test_ranks.py::test_a_video_that_one_rank_cannot_decode_ends_the_run_of_all"),
    ("release", "no UTF-8, no JSON, wrong types", "refused by file and place",
     "mt_video_bench/test_release.py::test_what_cannot_be_read_is_refused_by_file_and_place"),
    ("release", "rows that cannot be scored", "excluded and listed",
     "mlvu/test_release.py::test_what_cannot_be_scored_is_excluded_and_listed"),
    ("release", "damaged archives", "one clear error, nothing left",
     "test_archives.py::test_a_damaged_archive_is_one_clear_error_and_leaves_nothing"),
    ("release", "archives that unpack to far more", "refused", "test_archives.py::test_a_bomb_is_not_unpacked"),
    ("release", "the manifest is damaged", "named", "test_prepare.py::test_a_damaged_manifest_is_named"),
    ("Hub", "busy", "waited for", "end_to_end/test_hub.py::test_a_busy_hub_is_waited_for"),
    ("Hub", "a transfer is cut", "it goes on where it was cut",
     "end_to_end/test_hub.py::test_a_large_video_goes_on_where_it_was_cut"),
    ("Hub", "a file arrives damaged", "fetched once more",
     "end_to_end/test_hub.py::test_a_damaged_file_is_thrown_away_and_fetched_once_more"),
    ("Hub", "offline", "the cache, or a message",
     "end_to_end/test_hub.py::test_offline_it_works_from_the_cache_and_says_what_is_not_there"),
    ("Hub", "an upload fails", "only what is missing is sent then",
     "hf_upload/test_publish.py::test_after_a_break_only_what_is_missing_is_sent"),
    ("process", "killed while it prepares", "the old dataset or the new one", "faults/test_kills.py::test_prepare"),
    ("process", "killed while it makes clips", "no broken clip, the same clips at the end",
     "faults/test_kills.py::test_clips"),
    ("process", "killed while it uploads", "a whole dataset or none, the same files at the end",
     "faults/test_kills.py::test_upload"),
    ("process", "killed while it judges", "the numbers of an uninterrupted run",
     "results/test_resume.py::test_a_killed_run_ends_in_the_numbers_of_an_uninterrupted_one"),
    ("process", "killed while it judges, from the command line", "no answer is lost",
     "end_to_end/test_command_line.py::test_a_run_killed_while_it_judges_loses_no_answer"),
    ("process", "interrupted or crashed with calls in flight", "it ends at once",
     "judging/test_pool.py::test_a_process_ends_at_once_with_calls_in_flight_and_in_the_queue"),
]  # fmt: skip


@cache
def names_in(file):
    return {node.name for node in ast.parse((ROOT / "tests" / file).read_text()).body if hasattr(node, "name")}


@pytest.mark.parametrize(("where", "injected", "holds", "test"), FAULTS)
def test_a_test_injects_it(where, injected, holds, test):
    file, _, name = test.partition("::")
    assert name in names_in(file), f"{where}: {injected}: {holds}"
