//! The options of fio: their names, value formats and support. Names, types and ranges are from `--cmdhelp=all` and
//! `--enghelp` of fio 3.33, and from the development version of August 2026.

/// An option of fio.
#[derive(Clone, Copy)]
pub(super) struct OptionOfFio {
    /// Name printed by fio.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) fate: Fate,
}

/// Format of a value.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Any text; required.
    Text,
    /// Any text; may be omitted.
    TextOrNone,
    /// 0 or 1; the option without a value means 1.
    Flag,
    /// 0 or 1, with the option's default.
    Bool(bool),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, which may be followed by a colon and more text.
    ChoiceAnd(&'static [&'static str]),
    /// A whole number in a range, with an optional size unit.
    Whole(u64, u64),
    /// Up to three whole numbers in a range, for reads, writes and trims.
    Wholes(u64, u64),
    /// A whole number that may be negative.
    Signed(i64, i64),
    /// Up to three ranges of sizes.
    Ranges,
    /// Up to three lists of sizes and percentages.
    Splits,
    /// One size, or two sizes separated by `-`.
    SizeRange,
    /// A size, a percentage, or a number of zones.
    Extent,
    /// A time, by default in seconds.
    Seconds,
    /// One time, or two times separated by `-`, by default in seconds.
    SecondsRange,
    /// Up to three times, by default in microseconds.
    Micros,
    /// Numbers separated by `:`, none above this maximum.
    Floats(f64),
}

/// Support of an option.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    /// Supported; a remark reports differences from fio.
    Done,
    /// Not supported; ignored with this remark.
    Not(&'static str),
    /// Rejected for this reason, because the option would change the written data or their offsets.
    Refused(&'static str),
}
use Fate::{Done, Not, Refused};

/// Options with the same value format and support. Aliases follow a name, separated by `/`.
struct Group(Kind, Fate, &'static str);

const ANY: Kind = Kind::Whole(0, u64::MAX);
const POSITIVE: Kind = Kind::Whole(1, u64::MAX);

const RW: &[&str] = &[
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];
const DISTRIBUTIONS: &[&str] = &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs", "sequence"];
const CHECKSUMS: &[&str] = &[
    "0",
    "none",
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "pattern_hdr",
    "null",
];
const MEMORY: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge", "cudamalloc"];
const SERVICE: &[&str] = &["random", "zipf", "pareto", "normal", "gauss", "roundrobin", "sequential"];
const ERRORS: &[&str] = &["none", "read", "write", "io", "verify", "all", "0", "1"];
const STEADY: &[&str] = &["iops", "iops_slope", "bw", "bw_slope", "lat", "lat_slope"];

const LOGS: &str = "logs are text: time since the start, with all requests or the mean of each window";
const HISTOGRAM_LOG: &str =
    "no histogram log is written; the result contains histograms, one per interval with --interval";
const BUFFERS: &str = "data is always random, zeros or a pattern, never compressible or duplicate";
const CHECKING: &str = "data carries headstack's own stamps";
const CREATION: &str = "files that are too short are written once before the run";
const CLOCKS: &str = "every request is timed";
const SCHEDULING: &str = "the operating system decides the priority and placement of processes and memory";
const SUBMISSION: &str = "each request is issued as soon as possible, and each completion is handled immediately";
const REPLAY: &str = "applies to a replay, not to a job";
const TARGET: &str = "the queue depth stays fixed; sweep it for a saturation curve";
const STEADINESS: &str = "the job does not end when it reaches a steady state";
const ENGINE: &str = "applies to another engine";
const TRIMS: &str = "verified blocks are not trimmed";
const PLACEMENT: &str = "no placement hints are sent";
const NOTHING_RUN: &str = "no other program is started";
const DEPRECATED: &str = "fio itself ignores it";

/// All options except those of engines.
const CORE: &[Group] = &[
    // Definition of a job.
    Group(Kind::Text, Done, "description name wait_for filename directory filename_format ioengine"),
    Group(Kind::Text, Refused("directories are not searched; name the files with filename"), "opendir"),
    Group(Kind::Text, Refused("a job cannot replay; use headstack trace replay LOG"), "read_iolog"),
    Group(Kind::Text, Refused("its jobs are built into fio; define the jobs in the file"), "profile"),
    Group(Kind::Bool(false), Refused("creating files is not a load; omit this option"), "create_only"),
    Group(Kind::ChoiceAnd(RW), Done, "rw/readwrite"),
    Group(Kind::Choice(&["sequential", "identical"]), Done, "rw_sequencer"),
    Group(Kind::Wholes(1, u64::MAX), Done, "bs/blocksize ba/blockalign"),
    Group(Kind::Ranges, Done, "bsrange/blocksize_range"),
    Group(Kind::Splits, Done, "bssplit"),
    Group(
        Kind::Flag,
        Done,
        "bs_unaligned/blocksize_unaligned norandommap time_based verify_only exitall stonewall/wait_for_previous \
         new_group thread group_reporting",
    ),
    Group(Kind::Bool(false), Done, "bs_is_seq_rand softrandommap direct fill_device/fill_fs unlink"),
    Group(Kind::Bool(false), Refused("atomic writes are not supported"), "atomic"),
    Group(Kind::Bool(true), Done, "randrepeat buffered do_verify invalidate"),
    Group(Kind::Bool(false), Done, "allrandrepeat"),
    Group(Kind::Extent, Done, "size io_size/io_limit offset/fileoffset offset_increment zoneskip"),
    Group(Kind::SizeRange, Done, "filesize"),
    Group(ANY, Done, "offset_align number_ios randseed zonesize zonerange fsync fdatasync"),
    Group(POSITIVE, Done, "iodepth loops numjobs nrfiles/nr_files ramp_size"),
    Group(Kind::Choice(&["tausworthe", "lfsr", "tausworthe64"]), Done, "random_generator"),
    Group(Kind::ChoiceAnd(DISTRIBUTIONS), Done, "random_distribution"),
    Group(Kind::Wholes(0, 100), Done, "percentage_random"),
    Group(Kind::Whole(0, 100), Done, "rwmixread rwmixwrite"),
    Group(Kind::Wholes(0, u64::MAX), Done, "rate rate_iops"),
    Group(Kind::Choice(&["linear", "poisson"]), Done, "rate_process"),
    Group(Kind::Micros, Done, "thinktime"),
    Group(Kind::Whole(1, 1 << 31), Done, "thinktime_blocks"),
    Group(Kind::Seconds, Done, "runtime/timeout ramp_time"),
    Group(Kind::SecondsRange, Done, "startdelay"),
    Group(Kind::Choice(CHECKSUMS), Done, "verify"),
    Group(Kind::Choice(&["none", "strided", "zbd"]), Done, "zonemode"),
    Group(Kind::Choice(&["none", "0", "sync", "1", "dsync"]), Done, "sync"),
    Group(Kind::ChoiceAnd(SERVICE), Done, "file_service_type"),
    Group(Kind::Choice(&["group", "stonewall", "all"]), Done, "exit_what"),
    Group(Kind::Floats(100.0), Done, "percentile_list"),
    Group(Kind::Choice(&["1024", "1000"]), Done, "kb_base"),
    Group(Kind::Choice(&["0", "8", "1"]), Not("rates are printed in bytes"), "unit_base"),
    // Submission of requests.
    Group(
        ANY,
        Not(SUBMISSION),
        "iodepth_batch/iodepth_batch_submit iodepth_batch_complete_min/iodepth_batch_complete \
         iodepth_batch_complete_max iodepth_low",
    ),
    Group(Kind::Bool(false), Not("overlapping requests may be in flight at once"), "serialize_overlap"),
    Group(
        Kind::Choice(&["inline", "offload"]),
        Not("requests follow the schedule, and latency counts from the due time"),
        "io_submit_mode",
    ),
    // Files.
    Group(Kind::Choice(&["none", "exclusive", "readwrite"]), Not("files are not locked"), "lockfile"),
    Group(Kind::Choice(&["none", "file", "block", "char"]), Not("the file type is detected"), "filetype"),
    Group(Kind::Bool(true), Not("names are not made unique for clients"), "unique_filename"),
    Group(ANY, Not("all files stay open"), "openfiles"),
    Group(Kind::Bool(false), Refused("files are not appended to"), "file_append"),
    Group(Kind::Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]), Not(CREATION), "fallocate"),
    Group(Kind::Bool(true), Not(CREATION), "create_serialize create_fsync allow_file_create"),
    Group(Kind::Bool(false), Not(CREATION), "create_on_open overwrite"),
    Group(Kind::Bool(false), Not("headstack's own guard decides what may be written"), "allow_mounted_write"),
    Group(Kind::Bool(false), Not("files are not read before the run"), "pre_read"),
    Group(Kind::Bool(false), Not("files are removed only at the end"), "unlink_each_loop"),
    Group(
        Kind::Choice(&["0", "1", "random", "sequential", "noreuse"]),
        Not("the kernel gets no advice"),
        "fadvise_hint",
    ),
    Group(Kind::Bool(false), Done, "end_fsync fsync_on_close"),
    Group(
        Kind::Bool(false),
        Refused("a whole file system is not flushed; use end_fsync to flush the job's files"),
        "end_syncfs",
    ),
    Group(ANY, Refused("writes are never barriers"), "write_barrier"),
    Group(
        Kind::ChoiceAnd(&["wait_before", "write", "wait_after"]),
        Refused("sync_file_range(2) is never called; use fsync or fdatasync"),
        "sync_file_range",
    ),
    Group(Kind::Text, Not("the device's scheduler is not changed"), "ioscheduler"),
    // Randomness.
    Group(Kind::Bool(false), Refused("this preconditioning is not supported"), "sprandom"),
    Group(ANY, Not("this preconditioning is not supported"), "spr_num_regions spr_cs"),
    Group(Kind::Floats(f64::MAX), Not("this preconditioning is not supported"), "spr_op"),
    Group(ANY, Refused("offsets cannot follow a fixed sequence"), "random_sequence_stride"),
    Group(POSITIVE, Refused("each trim has a single range"), "num_range"),
    Group(Kind::Text, Not(DEPRECATED), "percentage_sequential rwmixcycle verifysort verifysort_nr flow_watermark"),
    // Times and rates.
    Group(Kind::Micros, Not("waiting jobs sleep"), "thinktime_spin"),
    Group(ANY, Not("waiting jobs sleep"), "thinkcycles"),
    Group(Kind::Choice(&["complete", "issue"]), Not("pauses are between requests"), "thinktime_blocks_type"),
    Group(Kind::Seconds, Not("pauses follow a number of requests, not a time"), "thinktime_iotime"),
    Group(Kind::Wholes(0, u64::MAX), Done, "rate_min/ratemin rate_iops_min"),
    Group(ANY, Done, "rate_cycle/ratecycle"),
    Group(Kind::Bool(false), Not("a job with a rate does not pause"), "rate_ignore_thinktime"),
    Group(Kind::Micros, Done, "max_latency"),
    Group(Kind::Micros, Not(TARGET), "latency_target latency_window"),
    Group(Kind::Floats(100.0), Not(TARGET), "latency_percentile"),
    Group(Kind::Bool(false), Not(TARGET), "latency_run"),
    Group(Kind::ChoiceAnd(STEADY), Not(STEADINESS), "steadystate/ss"),
    Group(
        Kind::Seconds,
        Not(STEADINESS),
        "steadystate_duration/ss_dur steadystate_ramp_time/ss_ramp steadystate_check_interval/ss_interval",
    ),
    Group(Kind::Choice(&["gettimeofday", "clock_gettime", "cpu"]), Not(CLOCKS), "clocksource"),
    Group(Kind::Bool(false), Not(CLOCKS), "gtod_reduce disable_lat disable_clat disable_slat"),
    Group(Kind::Bool(false), Not(CLOCKS), "disable_bw_measurement/disable_bw"),
    Group(ANY, Not(CLOCKS), "gtod_cpu job_start_clock_id"),
    // Data.
    Group(Kind::ChoiceAnd(MEMORY), Not("buffers are anonymous memory"), "mem/iomem"),
    Group(ANY, Not("buffers are anonymous memory"), "iomem_align/mem_align hugepage-size"),
    Group(ANY, Not("memory is not locked"), "lockmem"),
    Group(Kind::Flag, Done, "zero_buffers refill_buffers"),
    Group(Kind::Bool(true), Refused("writes never repeat the same data"), "scramble_buffers"),
    Group(Kind::Bool(false), Refused(BUFFERS), "dedupe_global"),
    Group(Kind::Text, Done, "buffer_pattern"),
    Group(
        Kind::Whole(0, 100),
        Refused(BUFFERS),
        "buffer_compress_percentage dedupe_percentage dedupe_working_set_percentage",
    ),
    Group(ANY, Not("written data is not compressible"), "buffer_compress_chunk"),
    Group(Kind::Choice(&["repeat", "working_set"]), Not("written data does not repeat"), "dedupe_mode"),
    // Verifying.
    Group(ANY, Not(CHECKING), "verify_interval verify_offset verify_pattern_interval verify_async"),
    Group(ANY, Not("all data is verified after the writes"), "verify_backlog verify_backlog_batch"),
    Group(Kind::Text, Refused("verified data carries headstack's stamp, not a pattern"), "verify_pattern"),
    Group(Kind::Text, Not(CHECKING), "verify_async_cpus"),
    Group(Kind::Bool(false), Not(CHECKING), "verify_dump experimental_verify verify_state_load"),
    Group(Kind::Bool(false), Not("every mismatch is counted; none ends the job"), "verify_fatal"),
    Group(Kind::Bool(true), Not(CHECKING), "verify_state_save verify_write_sequence verify_header_seed"),
    Group(Kind::Whole(0, 100), Refused(TRIMS), "trim_percentage"),
    Group(Kind::Bool(true), Not(TRIMS), "trim_verify_zero"),
    Group(ANY, Not(TRIMS), "trim_backlog trim_backlog_batch"),
    // Traces.
    Group(Kind::Text, Not("requests are not recorded here; use headstack trace capture"), "write_iolog"),
    Group(Kind::Bool(false), Not(REPLAY), "read_iolog_chunked replay_no_stall"),
    Group(Kind::Text, Not(REPLAY), "replay_redirect replay_skip merge_blktrace_file"),
    Group(ANY, Not(REPLAY), "replay_scale replay_align replay_time_scale"),
    Group(Kind::Floats(f64::MAX), Not(REPLAY), "merge_blktrace_scalars merge_blktrace_iters"),
    // Zoned devices and data placement.
    Group(ANY, Done, "zonecapacity max_open_zones job_max_open_zones"),
    Group(Kind::Bool(false), Done, "read_beyond_wp ignore_zone_limits recover_zbd_write_error write_zone_remainder"),
    Group(Kind::Floats(1.0), Done, "zone_reset_threshold zone_reset_frequency"),
    Group(Kind::Bool(false), Not(PLACEMENT), "fdp"),
    Group(Kind::Choice(&["none", "fdp", "streams"]), Not(PLACEMENT), "dataplacement/data_placement"),
    Group(Kind::Choice(&["random", "roundrobin", "scheme"]), Not(PLACEMENT), "plid_select/fdp_pli_select"),
    Group(Kind::Text, Not(PLACEMENT), "plids/fdp_pli dp_scheme"),
    Group(Kind::Choice(&["none", "short", "medium", "long", "extreme"]), Not(PLACEMENT), "write_hint"),
    // Processes.
    Group(Kind::Text, Not(NOTHING_RUN), "exec_prerun exec_postrun"),
    Group(Kind::Text, Not(SCHEDULING), "comm cpus_allowed numa_cpu_nodes numa_mem_policy cgroup"),
    Group(Kind::Choice(&["shared", "split"]), Not(SCHEDULING), "cpus_allowed_policy"),
    Group(ANY, Not(SCHEDULING), "cpumask prio prioclass priohint gpu_dev_id uid gid"),
    Group(Kind::Signed(-20, 19), Not(SCHEDULING), "nice"),
    Group(Kind::Bool(false), Not(SCHEDULING), "cgroup_nodelete"),
    Group(Kind::Whole(100, 1000), Not(SCHEDULING), "cgroup_weight"),
    Group(ANY, Done, "flow_id flow_sleep"),
    Group(Kind::Whole(0, 1000), Done, "flow"),
    Group(Kind::Flag, Done, "exitall_on_error"),
    Group(Kind::Choice(ERRORS), Done, "continue_on_error"),
    Group(Kind::Text, Not("errors are never ignored; use continue_on_error to continue after errors"), "ignore_error"),
    Group(Kind::Bool(false), Not("every error is reported"), "error_dump"),
    // Reports.
    Group(Kind::TextOrNone, Done, "write_bw_log write_lat_log write_iops_log"),
    Group(Kind::TextOrNone, Not(HISTOGRAM_LOG), "write_hist_log"),
    Group(Kind::Text, Not(LOGS), "log_compression_cpus"),
    Group(ANY, Not(LOGS), "bwavgtime iopsavgtime log_entries log_compression"),
    Group(ANY, Done, "log_avg_msec"),
    Group(ANY, Not(HISTOGRAM_LOG), "log_hist_msec"),
    Group(ANY, Not(LOGS), "log_alternate_epoch_clock_id"),
    Group(Kind::Whole(0, 6), Not(HISTOGRAM_LOG), "log_hist_coarseness"),
    Group(Kind::Bool(true), Done, "per_job_logs"),
    Group(Kind::Bool(false), Done, "log_offset"),
    Group(Kind::Bool(false), Not(LOGS), "log_prio log_issue_time log_store_compressed"),
    Group(Kind::Bool(false), Not(LOGS), "log_alternate_epoch/log_unix_epoch"),
    Group(Kind::Choice(&["avg", "max", "both", "0", "1"]), Not(LOGS), "log_window_value/log_max_value"),
    Group(Kind::Bool(false), Not("errors of trims are counted separately"), "block_error_percentiles"),
    Group(Kind::Bool(true), Not("every job is reported"), "stats"),
    Group(Kind::Bool(true), Done, "clat_percentiles"),
    Group(Kind::Bool(false), Done, "lat_percentiles"),
    Group(Kind::Bool(false), Done, "slat_percentiles"),
    Group(Kind::Whole(1, 10), Not("numbers always have four digits"), "significant_figures"),
    Group(Kind::Bool(true), Not("device counters are always recorded"), "disk_util"),
    Group(Kind::Choice(&["none", "mixed", "both", "0", "1", "2"]), Done, "unified_rw_reporting"),
];

const CONFIGURATION: &str = "the ring has a fixed setup";

const METADATA: &str = "use the block device of a namespace with metadata";

/// Options of engines.
const ENGINES: &[Group] = &[
    Group(Kind::Flag, Not("completions are not polled"), "hipri"),
    Group(ANY, Not("completions are not polled"), "hipri_percentage"),
    Group(Kind::Flag, Not(CONFIGURATION), "fixedbufs registerfiles sqthread_poll userspace_reap"),
    Group(ANY, Not(CONFIGURATION), "sqthread_poll_cpu nonvectored force_async uncached thp"),
    Group(Kind::Bool(false), Not(CONFIGURATION), "nowait"),
    Group(ANY, Not(SCHEDULING), "cmdprio_class cmdprio cmdprio_hint"),
    Group(Kind::Wholes(0, 100), Not(SCHEDULING), "cmdprio_percentage"),
    Group(Kind::Text, Not(SCHEDULING), "cmdprio_bssplit"),
    Group(
        Kind::Text,
        Not("applies to a test built into fio"),
        "block numruns dir threads device-names load prep test-duration threads-per-queue",
    ),
    Group(Kind::Text, Done, "uri"),
    Group(Kind::Choice(&["nvme"]), Done, "cmd_type"),
    Group(Kind::Choice(&["write", "uncor", "zeroes", "verify"]), Done, "write_mode"),
    Group(Kind::Bool(false), Done, "writefua"),
    Group(Kind::Bool(false), Not("reads may be answered from the drive's cache"), "readfua"),
    Group(ANY, Not(METADATA), "md_per_io_size pi_act apptag apptag_mask"),
    Group(Kind::Text, Not(METADATA), "pi_chk"),
    Group(Kind::Flag, Not(ENGINE), "listen pingpong"),
    Group(
        Kind::Text,
        Not(ENGINE),
        "sg_write_mode stream_id verify_mode deallocate cdw12 cdw13 hostname port protocol nodelay interface ttl window_size mss \
         cpuload cpuchunks cpumode exit_on_io_done program arguments grace_time std_redirect stat_type bindname \
         verb clustername pool clientname conf busy_poll touch_objects rbdname volume brick single-instance donorname \
         inplace skip_bad namenode chunk_size use_direct single_instance namenode_port http_host http_user http_pass \
         https http_mode http_s3_region http_s3_key http_s3_keyid http_s3_security_token http_s3_sse_customer_key \
         http_s3_sse_customer_algorithm http_s3_storage_class http_swift_auth_token http_object_mode http_verbose \
         nfs_url xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_dev_subnqn xnvme_mem xnvme_iovec \
         libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size \
         libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim libblkio_wait_mode \
         libblkio_force_enable_completion_eventfd gpu_dev_ids cuda_io rocm_io serverip direct_write_to_pmem \
         busy_wait_polling ime_psync ime_psyncv lun_size cont object_class svcl initiator svm_rw spdk_core_mask \
         spdk_mem transfer_size xattr vsock",
    ),
];

/// Returns all options, each with its aliases.
pub(super) fn all() -> impl Iterator<Item = (OptionOfFio, std::str::Split<'static, char>)> {
    CORE.iter().chain(ENGINES).flat_map(|Group(kind, fate, names)| {
        names.split_whitespace().map(|names| {
            let mut aliases = names.split('/');
            let name = aliases.next().unwrap_or_default();
            (OptionOfFio { name, kind: *kind, fate: *fate }, aliases)
        })
    })
}

/// Returns the option with this name or alias.
pub(super) fn find(name: &str) -> Option<OptionOfFio> {
    all()
        .find(|(option, aliases)| option.name == name || aliases.clone().any(|alias| alias == name))
        .map(|found| found.0)
}
