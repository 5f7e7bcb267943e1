//! Tests on the real kernel. They need root; without it they say so and do nothing.
//!
//! No libtest harness: this program is also the process supervisor (which must be the first thing `main` does) and the
//! starter that is killed. Arguments: a part of the names of the tests to run.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod contents;
mod copies;
mod discards;
mod files;
mod groups;
mod guests;
mod hazards;
mod hung;
mod logs;
mod measure;
mod mounts;
mod processes;
mod trees;
mod volumes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};

/// A test and its name.
type Test = (&'static str, fn());

macro_rules! tests {
    ($($module:ident :: { $($name:ident),+ $(,)? }),+ $(,)?) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn())),+),+]
    };
}

const TESTS: &[Test] = tests! {
    groups::{
        kl_83_everything_is_given_to_the_group_and_links_are_not_followed,
        kl_84_a_root_that_is_the_groups_is_taken_for_all_of_it,
        a_change_that_was_cut_short_is_finished,
        a_mount_within_is_not_crossed,
        a_file_is_nothing_to_give,
        kl_96_a_process_has_the_device_at_its_path,
        kl_96_a_device_that_can_be_written_is_not_given_for_reading,
        what_is_no_device_is_not_given,
    },
    contents::{
        files_are_shown_all_at_once_in_the_layout_of_kubernetes,
        nobody_sees_half_a_change,
        a_volume_in_memory_has_its_size_and_is_never_on_a_disk,
        places_of_the_machine_are_what_they_should_be,
        a_tree_is_measured_without_leaving_it,
        a_part_of_a_volume_is_all_a_process_sees,
        a_part_that_is_swapped_meanwhile_never_shows_the_machine,
        a_place_of_the_machine_is_seen_with_its_links_and_files,
        later_mounts_travel_as_asked,
        what_is_confidential_reaches_the_process_and_no_disk,
    },
    files::{
        directories_are_made_once_and_removed_once,
        a_directory_with_content_or_a_mount_is_not_removed,
        a_symbolic_link_in_a_path_is_refused,
        a_file_is_written_whole_for_its_owner_only,
        what_a_crashed_write_left_is_invisible_and_goes_with_the_file,
        what_cut_off_writes_left_goes_and_nothing_else,
        an_image_is_sparse_and_of_its_size,
        reading_and_listing_follow_no_link,
        kl_99_a_tree_is_listed_without_entering_what_is_mounted,
        a_full_disk_is_told_and_the_old_file_stays,
    },
    volumes::{
        a_whole_life_leaves_nothing,
        every_filesystem_we_offer_is_made_and_mounted,
        one_file_gets_one_loop_device,
        threads_that_attach_one_file_at_once_share_a_device,
        two_loop_devices_made_by_others_are_refused,
        a_mounted_loop_device_is_not_detached,
        a_device_held_for_a_moment_by_a_process_being_started_is_waited_for,
        a_detaching_that_waits_is_taken_back,
        a_loop_device_whose_file_is_gone_is_detached,
        a_file_behind_a_loop_device_is_not_removed,
        a_device_with_data_is_not_formatted,
        a_byte_that_waits_in_the_devices_cache_is_seen,
        an_ext4_is_sound_whatever_its_size,
        what_is_no_block_device_is_not_formatted,
    },
    copies::{
        a_copy_keeps_bytes_and_holes,
        blocks_are_shared_where_the_filesystem_can,
        a_copy_of_a_mounted_filesystem_is_whole,
        a_failed_copy_lets_the_filesystem_go_on,
        what_an_earlier_life_left_standing_still_goes_on,
        ext4_grows_when_it_is_not_mounted,
        xfs_and_btrfs_grow_while_mounted,
        a_device_is_shown_at_a_file,
        a_read_only_device_leaves_no_trace,
        what_is_read_ahead_can_be_set,
        a_target_with_content_is_not_removed,
        a_tree_is_removed_without_leaving_it,
        what_a_bind_shows_is_known_from_the_table,
    },
    trees::{
        a_directory_is_copied_with_everything_in_it,
        a_copy_of_a_directory_does_not_leave_it,
        a_directory_that_does_not_stop_changing_is_not_copied,
        an_image_and_a_directory_are_copied_together,
        half_a_copy_of_a_directory_is_never_seen,
    },
    discards::{
        deleted_files_give_their_room_back,
        what_a_raw_device_discards_is_given_back,
        only_the_root_of_a_mount_is_worked_on,
    },
    hung::{
        others_go_on_while_one_filesystem_hangs,
        what_waits_behind_a_hung_operation_is_told,
        hung_operations_are_bounded,
        many_operations_share_few_threads,
    },
    hazards::{
        every_hazard_has_a_test,
        recursive_delete_through_a_live_mount,
        removal_from_another_mount_namespace,
        a_torn_view_of_the_mount_table,
        a_lazy_unmount_hides_use,
        loops_lost_or_left_by_an_earlier_life,
        loops_do_direct_io_where_the_filesystem_can,
        mount_propagation_missing,
        writes_after_unmount_make_the_removal_fail,
    },
    mounts::{
        a_bind_within_one_filesystem_is_seen,
        another_mount_at_the_target_is_refused,
        flags_come_from_the_list,
        a_read_only_bind_cannot_be_written,
        a_writable_bind_of_a_read_only_mount_is_refused,
        a_target_swapped_for_a_link_leads_nowhere_else,
        stacked_mounts_are_all_taken_off,
        a_busy_mount_is_refused_by_name,
        odd_names_are_read_from_the_mount_table,
        a_filesystem_the_kernel_refuses_is_explained,
        a_mount_whose_server_hangs_or_died_is_seen_and_taken_off,
    },
    processes::{
        a_process_runs_logs_and_ends,
        what_was_cut_off_between_starting_and_forgetting_is_settled_at_the_next_start,
        starting_twice_starts_once,
        a_process_ended_by_a_signal_says_so,
        a_command_that_does_not_exist_is_named,
        a_missing_working_directory_is_named,
        a_missing_volume_is_named,
        the_root_is_read_only_and_tmp_is_its_own,
        a_volume_appears_where_the_machine_has_no_directory,
        a_volume_inside_a_volume_and_through_a_link,
        without_overlay_mount_points_must_exist,
        no_mount_of_the_machine_is_kept_busy,
        no_mount_of_a_process_comes_to_the_machine,
        stopping_takes_everything_with_it,
        a_process_that_ignores_the_request_is_made_to_end,
        a_process_outlives_the_kill_of_its_starter,
        a_killed_supervisor_takes_its_process_along,
        a_crash_before_the_start_can_be_repeated,
        what_runs_is_not_forgotten,
        the_end_is_heard_without_asking,
        an_environment_is_given_exactly_and_kept_private,
    },
    logs::{
        a_log_has_a_bound,
        streams_and_times_are_recorded,
        any_user_may_open_its_output,
        a_line_without_an_end_is_seen_and_a_closed_output_ends_nothing,
        much_output_is_taken_in,
    },
    guests::{
        a_guest_has_the_default_capabilities_and_a_filter,
        a_guest_is_the_user_it_is_asked_to_be,
        capabilities_follow_what_is_asked,
        what_leads_to_the_machine_is_not_there,
        the_first_process_gives_nothing_away,
        a_program_of_ours_cannot_be_written_through_a_guest,
        containers_of_a_pod_share_network_and_name,
        limits_are_enforced_and_groups_go,
        a_root_may_be_written_in_memory,
        a_privileged_process_has_the_devices,
        descriptors_of_the_starter_stay_with_it,
        without_root_a_process_has_a_user_namespace,
    },
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(io_host::SHIM_WORD) => {
            return u8::try_from(io_host::shim_main(&args[1..])).map_or(ExitCode::FAILURE, ExitCode::from);
        }
        Some("starter") => processes::start_and_wait(&args[1]),
        Some("rootless") => {
            guests::run_without_root(&args[1], &args[2]);
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    if !bench::require_root() {
        return ExitCode::SUCCESS;
    }
    if args.first().is_some_and(|word| word == "measure") {
        measure::run();
        return ExitCode::SUCCESS;
    }
    let filter = args.iter().find(|arg| !arg.starts_with('-')).map_or("", String::as_str);
    let failed = run(filter);
    // Most machines share their mounts with namespaces made later, some do not. Processes must not care.
    let shared = std::env::var_os(SHARED).is_some() || run_with_shared_mounts(filter);
    if failed == 0 && shared { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

const SHARED: &str = "IO_HOST_TESTS_WITH_SHARED_MOUNTS";

fn run(filter: &str) -> usize {
    let shared = if std::env::var_os(SHARED).is_some() { " (shared mounts)" } else { "" };
    let mut failed = Vec::new();
    let chosen = TESTS.iter().filter(|(name, _)| name.contains(filter));
    for (name, test) in chosen.filter(|(name, _)| shared.is_empty() || !name.starts_with("files")) {
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name}{shared} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        println!("failed{shared}: {failed:?}");
    }
    failed.len()
}

fn run_with_shared_mounts(filter: &str) -> bool {
    let mut again = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/own-mounts.sh"));
    again.arg("shared").arg(std::env::current_exe().unwrap()).arg(filter);
    again.env(SHARED, "1").status().is_ok_and(|status| status.success())
}
