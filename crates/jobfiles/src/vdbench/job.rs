//! Converts a workload and its storage to a job.

use headstack_workload::{
    AccessLine, AccessSpecification, Addresses, Arrivals, Band, InputError, RunLength, WarmUp, Workload,
};

use super::definitions::{Load, RunDefinition, Storage};
use super::scan::Parameter;
use super::values::{OpenFlags, Seek, Sizes, Span};
use crate::{Bounds, Extent, Job, JobEngine, Limits, Part, Verify};

/// Inputs for a job.
pub(super) struct Placed<'d> {
    pub(super) load: &'d Load,
    pub(super) storages: &'d [&'d Storage],
    pub(super) run: &'d RunDefinition,
    /// Position for error messages.
    pub(super) place: &'d Parameter,
    pub(super) share_percent: f64,
    pub(super) threads: u32,
    pub(super) verify: Verify,
}

/// Returns the job without its arrivals, which depend on the other jobs of its run.
pub(super) fn job(placed: &Placed) -> Result<Job, InputError> {
    let Placed { load, storages, run, .. } = placed;
    let (part, addresses) = placed.part()?;
    let open = run.open.or(load.open).unwrap_or(storages[0].open);
    let luns: Vec<String> = storages.iter().filter_map(|storage| storage.lun.clone()).collect();
    let names: Vec<&str> = storages.iter().map(|storage| storage.name.as_str()).collect();
    let names = names.join("+");
    let is_raw = luns.iter().all(|lun| is_raw(lun));
    let name = format!("{} {names}", load.name);
    // Without a warm-up, vdbench excludes the first interval from its averages.
    let (warm_up_ns, time_ns) = match run.warm_up_ns {
        0 => (run.interval_ns, run.elapsed_ns - run.interval_ns),
        warm_up_ns => (warm_up_ns, run.elapsed_ns),
    };
    Ok(Job {
        group: None,
        copies: 1,
        file_bytes: placed.file_bytes().filter(|_| !is_raw),
        part,
        engine: JobEngine::Ring,
        // On Linux, vdbench either opens a device with O_DIRECT or fails; on other systems, raw devices have no cache.
        direct: open.direct || is_raw && open == OpenFlags::default(),
        sync: open.sync,
        workload: Workload {
            name: name.clone(),
            source: String::new(),
            specification: AccessSpecification { name: load.name.clone(), lines: placed.lines() },
            addresses,
            streams: load.streams,
            stream_turn: 1,
            flush_every: 0,
            sync_every: 0,
            dsync_every: 0,
            sequence: headstack_workload::Sequence::default(),
            arrivals: Arrivals::default(),
            warm_up: WarmUp { requests: 0, time_ns: warm_up_ns },
            run_length: RunLength::TimeNs(time_ns),
        },
        limits: Limits { bytes: placed.limit_bytes(), time_ns: Some(time_ns), ..Limits::default() },
        rates_per_s: None,
        flow: None,
        errors: crate::Errors::default(),
        content: crate::Content::default(),
        bounds: Bounds::default(),
        flushes_at_end: false,
        zones: None,
        share_percent: None,
        start_delay_ns: 0,
        slots: placed.threads,
        verify: if load.read_percent < 100.0 { placed.verify } else { Verify::No },
        seed: None,
        first_copy: 0,
        unlink: false,
        invalidate: false,
        percentiles: Vec::new(),
        as_written: vec![
            ("wd".to_owned(), load.name.clone()),
            ("sd".to_owned(), names),
            ("lun".to_owned(), luns.join(",")),
            ("threads".to_owned(), placed.threads.to_string()),
        ],
        targets: luns,
        name,
    })
}

/// Whether vdbench treats the lun as a device (`SD_entry.canWeUseBlockZero`).
fn is_raw(lun: &str) -> bool {
    lun.starts_with("/dev/") || lun.starts_with(r"\\")
}

impl Placed<'_> {
    fn random_percent(&self) -> f64 {
        match self.load.seek {
            Seek::Random(percent) => percent,
            Seek::UntilEnd => 0.0,
        }
    }

    /// Returns the used part of the storage, in bytes if its size is known, and the distribution of random requests
    /// over the part.
    fn part(&self) -> Result<(Part, Addresses), InputError> {
        let whole = || match (self.storages, self.size_bytes()) {
            // Several files are used whole, as is storage whose range has no end.
            ([storage], Some(_)) => {
                Part { start: Extent::Bytes(storage.offset_bytes), length: storage.size_bytes.map(Extent::Bytes) }
            }
            ([storage], None) => Part { start: Extent::Bytes(storage.offset_bytes), length: None },
            _ => Part::default(),
        };
        let Some(span) = self.load.span.or(self.storages[0].range) else {
            return Ok((whole(), Addresses::Uniform));
        };
        let in_percent = span.to <= 200.0;
        if in_percent && span.to > 100.0 {
            return Ok((whole(), self.round_the_end(span)?));
        }
        let addresses = match self.load.is_hotband {
            true => Addresses::VdbenchHotband { from_percent: 0.0, to_percent: 100.0 },
            false => Addresses::Uniform,
        };
        let offset_bytes = if let [storage] = self.storages { storage.offset_bytes } else { 0 };
        let total_bytes = match self.storages {
            [storage] => storage.size_bytes,
            _ => self.size_bytes(),
        };
        let part = match (in_percent, total_bytes) {
            (false, _) => bytes(offset_bytes, span.from, span.to),
            (true, Some(total)) => {
                let at = |percent: f64| total as f64 * (percent / 100.0);
                bytes(offset_bytes, at(span.from), at(span.to))
            }
            (true, None) if offset_bytes == 0 => {
                Part { start: Extent::Percent(span.from), length: Some(Extent::Percent(span.to - span.from)) }
            }
            (true, None) => {
                return Err(self.place.error("a range in percent on storage with an offset needs its size; add size"));
            }
        };
        Ok((part, addresses))
    }

    /// Returns the addresses of a range that wraps around to the start, which is valid only for uniform random
    /// requests.
    fn round_the_end(&self, span: Span) -> Result<Addresses, InputError> {
        if self.load.is_hotband || self.random_percent() < 100.0 {
            let message = "a range above 100 % wraps around and requires seekpct=rand without hotband";
            return Err(self.place.error(message));
        }
        let length = span.to - span.from;
        let band = |from: f64, to: f64| Band {
            from_percent: from,
            to_percent: to,
            share_percent: (to - from) / length * 100.0,
        };
        // A range may be entirely beyond the end.
        Ok(Addresses::HotBands(match span.from >= 100.0 {
            true => vec![band(span.from - 100.0, span.to - 100.0)],
            false => vec![band(span.from, 100.0), band(0.0, span.to - 100.0)],
        }))
    }

    /// Returns the size of each file if all files have the same size.
    fn file_bytes(&self) -> Option<u64> {
        let size = |storage: &Storage| Some(storage.size_bytes?.saturating_add(storage.offset_bytes));
        let first = size(self.storages[0])?;
        self.storages.iter().all(|storage| size(storage) == Some(first)).then_some(first)
    }

    /// Returns the total size of all storage, in bytes.
    fn size_bytes(&self) -> Option<u64> {
        let size = |storage: &&Storage| storage.size_bytes.map(|size| size.saturating_add(storage.offset_bytes));
        self.storages.iter().map(size).try_fold(0u64, |sum, size| Some(sum.saturating_add(size?)))
    }

    /// Returns the lines of the access specification.
    fn lines(&self) -> Vec<AccessLine> {
        let Sizes { shares, align_bytes } = &self.load.sizes;
        let random_percent = self.random_percent();
        let greatest = shares.iter().map(|(size, _)| *size).fold(0, greatest_common_divisor);
        let line = |&(size_bytes, share_percent): &(u32, f64)| AccessLine {
            size_bytes,
            share_percent,
            read_percent: self.load.read_percent,
            random_percent,
            trim_percent: 0.0,
            delay_ns: 0,
            burst: 1,
            // Random requests go to multiples of their size (`WG_entry.blockBoundarySeek`); sequential requests
            // continue where the previous request ended.
            align_bytes: self.storages[0].align_bytes.or(*align_bytes).or(match random_percent {
                0.0 => None,
                100.0 => Some(size_bytes),
                _ => Some(greatest),
            }),
        };
        shares.iter().map(line).collect()
    }

    fn limit_bytes(&self) -> Option<u64> {
        let storage_bytes = self.storages.iter().map(|storage| storage.size_bytes).sum::<Option<u64>>();
        let data_bytes = self.run.max_data.and_then(|data| match data < 100.0 {
            true => storage_bytes.map(|bytes| bytes as f64 * data),
            // The limit applies to the whole run.
            false => Some(data * self.share_percent / 100.0),
        });
        let pass_bytes = storage_bytes.map(|bytes| bytes as f64).filter(|_| self.load.seek == Seek::UntilEnd);
        let limit = match (data_bytes, pass_bytes) {
            (Some(data), Some(pass)) => Some(data.min(pass)),
            (data, pass) => data.or(pass),
        };
        limit.map(|bytes| (bytes as u64).max(1))
    }
}

fn bytes(offset_bytes: u64, from: f64, to: f64) -> Part {
    let start = offset_bytes.saturating_add(from as u64);
    Part { start: Extent::Bytes(start), length: Some(Extent::Bytes((to - from) as u64)) }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
