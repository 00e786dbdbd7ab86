//! Converts the settings of a section to jobs.

use headstack_workload::{InputError, LoopLength, QUEUE_DEPTH_MAX, RunLength, Sequence, WarmUp, Workload};

use super::engine::{engine, is_libaio};
use super::layout::Layout;
use super::mix;
use super::settings::{Remarks, Settings};
use super::syntax::Place;
use super::values::{self, Amount};
use crate::{Bounds, Content, Errors, Flow, Job, JobEngine, Limits, Sync, Verify, Zoning};

/// Maximum number of concurrent jobs in fio.
pub(super) const JOBS_MAX: u64 = 4096;

/// Returns the jobs of a section: one, or one per copy if copies have their own files or offsets. `name` is the name in
/// reports. Files without a name of their own are named after the section.
pub(super) fn jobs(
    name: &str,
    section: &str,
    source: &str,
    settings: &Settings,
    remarks: &mut Remarks,
) -> Result<Vec<Job>, InputError> {
    let engine = engine(name, settings, remarks)?;
    let copies = settings.within("numjobs", 1, 1, JOBS_MAX)?;
    let layout = Layout::new(section, settings, copies, remarks)?;
    let depth = depth(settings, engine, remarks)?;
    let mix = mix::mix(settings, layout.total_bytes(), layout.files(), depth, remarks)?;
    let mut limits = limits(settings, &mix, remarks)?;
    // A part of known size is counted in bytes, even if the zones cover more than the part.
    let crosses_part = mix.crosses_part && layout.total_bytes().is_some();
    if let (true, Some(total), Some(passes)) = (crosses_part, layout.total_bytes(), limits.passes) {
        (limits.bytes, limits.passes) = (Some((total as f64 * passes).round() as u64), None);
    }
    let warm_up = warm_up(settings, mix.mean_bytes)?;
    let run_length = run_length(&limits, layout.total_bytes(), mix.mean_bytes);
    let looped = looped(settings, &limits)?;
    let sequence = Sequence { looped, ..mix.workload.sequence };
    let workload = named(Workload { warm_up, run_length, sequence, ..mix.workload }, name, source, &remarks.section)?;
    remark_what_differs(settings, &layout, remarks);
    let job = Job {
        name: name.to_owned(),
        group: None,
        copies: copies as u32,
        first_copy: 0,
        targets: Vec::new(),
        file_bytes: None,
        part: Default::default(),
        engine,
        direct: settings.is_direct(),
        sync: sync(settings),
        verify: verify(settings, &workload),
        workload,
        limits,
        rates_per_s: mix.rates_per_s,
        flow: flow(settings)?,
        errors: errors(settings),
        bounds: bounds(settings)?,
        content: content(settings)?,
        flushes_at_end: ["end_fsync", "fsync_on_close"].iter().any(|name| settings.is(name, false)),
        zones: zoning(settings)?,
        share_percent: None,
        start_delay_ns: start_delay_ns(settings, remarks)?,
        slots: depth,
        seed: settings.whole("randseed")?,
        unlink: settings.is("unlink", false),
        invalidate: settings.is("invalidate", true),
        percentiles: settings.parsed("percentile_list", |value, _| values::floats(value, 100.0))?.unwrap_or_default(),
        as_written: Vec::new(),
    };
    let placed = |copy: u32, copies: u32| -> Result<Job, InputError> {
        let (mut part, targets) = (layout.part(copy, settings)?, layout.targets(copy));
        if crosses_part {
            part.length = None;
        }
        let file_bytes = layout.file_bytes(part.start, &targets);
        Ok(Job { copies, first_copy: copy, targets, file_bytes, part, ..job.clone() })
    };
    match layout.copies_differ() {
        true => (0..copies as u32).map(|copy| placed(copy, 1)).collect(),
        false => Ok(vec![placed(0, copies as u32)?]),
    }
}

fn named(mut workload: Workload, name: &str, source: &str, section: &Place) -> Result<Workload, InputError> {
    workload.name = name.to_owned();
    workload.source = source.to_owned();
    workload.specification.name = name.to_owned();
    match workload.validate() {
        Ok(()) => Ok(workload),
        Err(error) => Err(section.error(name, error.to_string())),
    }
}

/// Returns the queue depth.
fn depth(settings: &Settings, engine: JobEngine, remarks: &mut Remarks) -> Result<u32, InputError> {
    let depth = settings.within("iodepth", 1, 1, QUEUE_DEPTH_MAX.into())? as u32;
    if engine == JobEngine::Psync && depth > 1 {
        let message = match is_libaio(settings) {
            true => {
                "libaio blocks on each request to the page cache: so the queue depth is 1, as \
                 in fio; use direct=1 for a higher depth"
            }
            false => "a synchronous engine has queue depth 1, as in fio",
        };
        remarks.about(settings, &["iodepth"], message);
        return Ok(1);
    }
    if settings.text("ioengine") == Some("posixaio") && depth > 1 {
        let message = "fio's posixaio serves one request per file at a time; headstack keeps the queue full";
        remarks.about(settings, &["ioengine"], message);
    }
    Ok(depth)
}

fn sync(settings: &Settings) -> Sync {
    match settings.text("sync") {
        Some("dsync") => Sync::Data,
        Some("sync" | "1") => Sync::File,
        // With NVMe commands, each write completes when it is on the medium.
        _ if settings.is("writefua", false) => Sync::Data,
        _ => Sync::No,
    }
}

fn verify(settings: &Settings, workload: &Workload) -> Verify {
    let writes = workload.specification.lines.iter().any(|line| line.read_percent < 100.0 && line.trim_percent < 100.0);
    match settings.text("verify") {
        None | Some("0" | "none" | "null") => Verify::No,
        Some(_) if settings.is("verify_only", false) || !writes => Verify::Check,
        Some(_) if settings.is("do_verify", true) => Verify::StampAndRead,
        Some(_) => Verify::Stamp,
    }
}

fn flow(settings: &Settings) -> Result<Option<Flow>, InputError> {
    let weight = settings.within("flow", 0, 0, 1000)? as u32;
    let id = settings.whole("flow_id")?.unwrap_or(0);
    let sleep_ns = settings.whole("flow_sleep")?.unwrap_or(0).saturating_mul(1000);
    Ok((weight > 0).then_some(Flow { id, weight, sleep_ns }))
}

/// Returns how the job handles errors. fio ends a job at its first error unless errors of that kind are to be ignored.
fn errors(settings: &Settings) -> Errors {
    let kinds = settings.text("continue_on_error").unwrap_or("none");
    Errors {
        reads_go_on: matches!(kinds, "read" | "io" | "all" | "1"),
        writes_go_on: matches!(kinds, "write" | "io" | "all" | "1"),
        end_all: settings.is("exitall_on_error", false),
    }
}

/// Returns the limits of `max_latency`, `rate_min` and `rate_iops_min`, whose rates are averaged over `rate_cycle`.
fn bounds(settings: &Settings) -> Result<Bounds, InputError> {
    let latencies = settings
        .parsed("max_latency", |value, setting| {
            values::triple(value, |field| values::time_ns(field, setting.option.kind))
        })?
        .unwrap_or_default();
    let rates = |name: &str| Ok::<_, InputError>(settings.sizes(name)?.map(Option::unwrap_or_default));
    let (iops_min, bytes_per_s_min) = (rates("rate_iops_min")?, rates("rate_min")?);
    for (least, most, stated) in [("rate_iops_min", "rate_iops", iops_min), ("rate_min", "rate", bytes_per_s_min)] {
        let highest = rates(most)?;
        if let Some(kind) = (0..3).find(|&kind| highest[kind] > 0 && stated[kind] > highest[kind]) {
            let message = format!("{} exceeds {most}; the maximum is {}", stated[kind], highest[kind]);
            return Err(settings.error(&[least], message));
        }
    }
    let cycle_ms = settings.whole("rate_cycle")?.unwrap_or(1000);
    let latency_max_ns = latencies.map(Option::unwrap_or_default);
    Ok(Bounds { latency_max_ns, iops_min, bytes_per_s_min, cycle_ns: cycle_ms.saturating_mul(1_000_000) })
}

/// Returns the options of `zonemode=zbd`, which have no effect in other modes.
fn zoning(settings: &Settings) -> Result<Option<Zoning>, InputError> {
    if settings.text("zonemode") != Some("zbd") {
        return Ok(None);
    }
    let share = |name: &str| -> Result<f64, InputError> {
        Ok(settings
            .parsed(name, |value, _| values::floats(value, 1.0))?
            .and_then(|all| all.first().copied())
            .unwrap_or(0.0))
    };
    let count = |name: &str| settings.within(name, 0, 0, u32::MAX.into()).map(|count| count as u32);
    let bytes = |name: &str| Ok::<_, InputError>(settings.whole(name)?.filter(|bytes| *bytes > 0));
    let skip_bytes = match settings.amount("zoneskip")? {
        None => 0,
        Some(Amount::Bytes(bytes)) => bytes,
        Some(Amount::Percent(_)) => {
            return Err(settings.error(&["zoneskip"], "must be in bytes or zones, not percent"));
        }
    };
    Ok(Some(Zoning {
        size_bytes: bytes("zonesize")?,
        capacity_bytes: bytes("zonecapacity")?,
        skip_bytes,
        open_max: count("max_open_zones")?,
        job_open_max: count("job_max_open_zones")?,
        ignores_limits: settings.is("ignore_zone_limits", false),
        reads_beyond_pointer: settings.is("read_beyond_wp", false),
        reset_threshold: share("zone_reset_threshold")?,
        reset_frequency: share("zone_reset_frequency")?,
        writes_remainder: settings.is("write_zone_remainder", false),
    }))
}

fn content(settings: &Settings) -> Result<Content, InputError> {
    match settings.last_of(&["zero_buffers", "buffer_pattern"]) {
        Some(setting) if setting.option.name == "buffer_pattern" => {
            values::pattern(setting.value.trim()).map(Content::Pattern).map_err(|message| setting.error(message))
        }
        Some(setting) if setting.value == "1" => Ok(Content::Pattern(vec![0])),
        _ => Ok(Content::Random),
    }
}

fn start_delay_ns(settings: &Settings, remarks: &mut Remarks) -> Result<u64, InputError> {
    let range = settings
        .parsed("startdelay", |value, setting| values::range(value, |end| values::time_ns(end, setting.option.kind)))?;
    let (low_ns, high_ns) = range.unwrap_or_default();
    if low_ns != high_ns {
        remarks.about(settings, &["startdelay"], "every copy starts after the shorter delay");
    }
    Ok(low_ns)
}

/// Maximum number of loops that are each verified; with more, only the last one is.
const VERIFIED_LOOPS_MAX: u64 = 1024;

/// Returns how many loops of a job are verified one by one, as in fio. A time-limited job has none.
pub(super) fn verified_loops(settings: &Settings, jobs: &[Job], remarks: &mut Remarks) -> Result<u64, InputError> {
    let loops = settings.within("loops", 1, 1, u64::MAX)?;
    let is_verified = jobs.iter().all(|job| job.verify == Verify::StampAndRead);
    if loops == 1
        || !is_verified
        || jobs.iter().all(|job| job.limits == Limits { time_ns: job.limits.time_ns, ..Limits::default() })
    {
        return Ok(1);
    }
    if loops > VERIFIED_LOOPS_MAX || jobs.iter().any(|job| job.limits.time_ns.is_some()) {
        let message =
            format!("verifies only the last loop; to verify each, use up to {VERIFIED_LOOPS_MAX} loops and no runtime");
        remarks.about(settings, &["loops"], message);
        return Ok(1);
    }
    Ok(loops)
}

/// Returns the limits of a job: `number_ios`; `io_size` or `loops` passes over the part; and `runtime`. A `time_based`
/// job is limited only by `runtime`.
fn limits(settings: &Settings, mix: &mix::Mix, remarks: &mut Remarks) -> Result<Limits, InputError> {
    let time_ns = settings.time_ns("runtime")?.filter(|time_ns| *time_ns > 0);
    if settings.is("time_based", false) {
        if time_ns.is_some() {
            return Ok(Limits { time_ns, ..Limits::default() });
        }
        remarks.about(settings, &["time_based"], "has no effect without runtime");
    }
    let loops = settings.within("loops", 1, 1, u64::MAX)?;
    let times = |name: &str, count: u64| {
        let product = count.checked_mul(loops);
        product.ok_or_else(|| settings.error(&["loops", name], format!("{loops} loops of {count} exceed 2^64")))
    };
    let requests = match settings.whole("number_ios")? {
        None | Some(0) => None,
        Some(count) => Some(times("number_ios", count.saturating_mul(mix.visits))?),
    };
    let (bytes, passes) = match settings.amount("io_size")? {
        None | Some(Amount::Bytes(0)) => (None, Some(loops as f64 * mix.progress * mix.visits as f64)),
        Some(Amount::Bytes(bytes)) => (Some(times("io_size", bytes.saturating_mul(mix.visits))?), None),
        Some(Amount::Percent(percent)) => (None, Some(loops as f64 * mix.visits as f64 * percent / 100.0)),
    };
    Ok(Limits { transfers: requests, bytes, passes, time_ns, ..Limits::default() })
}

/// Returns the length of the loop after which a job repeats its random numbers. fio reseeds before each of its `loops`
/// unless `randrepeat=0` is set. A `time_based` job is one loop.
fn looped(settings: &Settings, limits: &Limits) -> Result<Option<LoopLength>, InputError> {
    let loops = settings.within("loops", 1, 1, u64::MAX)?;
    if loops == 1 || settings.is("time_based", false) || !repeats_random(settings) {
        return Ok(None);
    }
    let Limits { transfers, bytes, passes, .. } = *limits;
    Ok(Some(LoopLength {
        transfers: transfers.map(|all| all / loops),
        bytes: bytes.map(|all| all / loops),
        passes: passes.map(|all| all / loops as f64),
    }))
}

/// Whether the job draws the same random numbers in every run.
fn repeats_random(settings: &Settings) -> bool {
    let last = settings.last_of(&["randrepeat", "allrandrepeat"]);
    last.is_none_or(|setting| setting.option.name != "randrepeat" || setting.value != "0")
}

fn warm_up(settings: &Settings, mean_bytes: f64) -> Result<WarmUp, InputError> {
    let bytes = settings.whole("ramp_size")?.unwrap_or(0);
    let requests = (bytes as f64 / mean_bytes).ceil() as u64;
    Ok(WarmUp { requests, time_ns: settings.time_ns("ramp_time")?.unwrap_or(0) })
}

/// Returns the run length of a simulation that is closest to the limits.
fn run_length(limits: &Limits, total_bytes: Option<u64>, mean_bytes: f64) -> RunLength {
    if let Some(time_ns) = limits.time_ns {
        return RunLength::TimeNs(time_ns);
    }
    let of_part = limits.passes.zip(total_bytes).map(|(passes, total)| passes * total as f64);
    let of_bytes = limits.bytes.map(|bytes| bytes as f64).or(of_part);
    let requests = of_bytes.map(|bytes| (bytes / mean_bytes).ceil() as u64);
    match limits.transfers.into_iter().chain(requests).min() {
        Some(requests) => RunLength::Requests(requests.max(1)),
        None => RunLength::default(),
    }
}

/// Adds remarks on supported options that differ from fio.
fn remark_what_differs(settings: &Settings, layout: &Layout, remarks: &mut Remarks) {
    let is = |name: &str, value: &str| settings.text(name) == Some(value);
    if settings.text("verify").is_some_and(|verify| !matches!(verify, "0" | "none" | "null")) {
        remarks.about(
            settings,
            &["verify"],
            "writes carry headstack's own stamp, and verification recognizes no other",
        );
    }
    if !repeats_random(settings) {
        remarks.about(settings, &["randrepeat"], "the seed of the run determines the requests");
    }
    if is("exit_what", "all") {
        remarks.about(settings, &["exit_what"], "the first job to end ends its phase; then the next phase starts");
    }
    if settings.is("fill_device", false) && !layout.targets(0).iter().all(|target| target.starts_with("/dev/")) {
        remarks.about(settings, &["fill_device"], "files are written up to their size; the file system is not filled");
    }
}
