//! [`Parts`]: cuts stored traces into parts of time for analysis by several workers.

use std::path::Path;

use crate::analyze::{Options, Part};
use crate::collect::Collector;
use crate::error::TraceError;
use crate::formats::{Format, ReadOptions};
use crate::input::Input;
use crate::reader::{SIDE_BY_SIDE, TraceReader, files_of};
use crate::record::Record;
use crate::store::{Group, Stored};
use crate::window::Window;

/// Cuts of stored traces that are read as one. They depend only on the files, and each is between requests with
/// different arrivals, so the division among workers does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// First arrival of the analysed requests; `None` if there are none.
    pub start_ns: Option<u64>,
    /// Half-open ranges of arrivals, one per part.
    pub windows: Vec<(u64, u64)>,
    /// Number of requests in the files.
    pub requests: u64,
}

impl Parts {
    /// Cuts into parts of at least `requests` requests.
    ///
    /// # Errors
    /// When files are not in the stored form, or too many; when steps depend on earlier requests.
    pub fn of(paths: &[&Path], options: &ReadOptions, requests: u64) -> Result<Parts, TraceError> {
        if let Some(step) = options.steps.iter().find(|step| !step.is_of_each_request()) {
            let message = format!("the step {step} depends on earlier requests; import the trace with this step first");
            return Err(TraceError::of_file(name(paths), message));
        }
        let files = files_of(paths)?;
        if files.len() > SIDE_BY_SIDE {
            let message = format!("more than {SIDE_BY_SIDE} files cannot be read in parts; import them into one first");
            return Err(TraceError::of_file(name(paths), message));
        }
        let mut groups = Vec::new();
        for path in &files {
            groups.extend(groups_of(path)?);
        }
        groups.sort_by_key(|group| group.first_ns);
        let mut reader = TraceReader::open(paths, options)?;
        let mut batch = Vec::new();
        reader.next_batch(&mut batch)?;
        let start_ns = batch.first().map(|record| record.arrival_ns);
        let all = groups.iter().map(|group| group.requests).sum();
        Ok(Parts { start_ns, windows: windows(&groups, requests), requests: all })
    }
}

fn name(paths: &[&Path]) -> String {
    paths.first().map_or_else(String::new, |path| path.display().to_string())
}

fn groups_of(path: &Path) -> Result<Vec<Group>, TraceError> {
    let input = Input::open(path)?;
    if !Format::Parquet.fits(input.head()) {
        let message = "is not in the stored form and cannot be read in parts; import it first";
        return Err(TraceError::of_file(path.display().to_string(), message));
    }
    Ok(Stored::open(&input, None, &mut Collector::new(false))?.groups())
}

fn windows(groups: &[Group], requests: u64) -> Vec<(u64, u64)> {
    let (mut cuts, mut since) = (vec![0], 0);
    for group in groups {
        if since >= requests && cuts.last() < Some(&group.first_ns) {
            cuts.push(group.first_ns);
            since = 0;
        }
        since += group.requests;
    }
    cuts.push(u64::MAX);
    cuts.windows(2).map(|ends| (ends[0], ends[1])).collect()
}

impl Part {
    /// Starts the part of stored traces from a moment on. Requests in flight at that time are found in earlier row
    /// groups, of which only those are read whose longest response reaches that far. The trace begins at `start_ns`.
    ///
    /// # Errors
    /// Those of files; when options are out of range.
    pub fn of(
        paths: &[&Path],
        read: &ReadOptions,
        options: Options,
        start_ns: u64,
        from_ns: u64,
    ) -> Result<Part, TraceError> {
        let window = Window { from_ns: 0, to_ns: from_ns, in_flight_at_ns: Some(from_ns) };
        let in_flight: Vec<Record> =
            TraceReader::open(paths, &ReadOptions { window: Some(window), ..read.clone() })?.read_all()?;
        Part::new(options, start_ns, &in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_between_arrivals_and_hold_all() {
        let group = |first_ns, last_ns| Group { first_ns, last_ns, done_ns: last_ns, requests: 100 };
        let groups = [group(5, 10), group(10, 10), group(10, 12), group(13, 20), group(20, 30)];
        assert_eq!(windows(&groups, 100), [(0, 10), (10, 13), (13, 20), (20, u64::MAX)]);
        assert_eq!(windows(&groups, 250), [(0, 13), (13, u64::MAX)]);
        assert_eq!(windows(&groups, 1_000), [(0, u64::MAX)]);
        assert_eq!(windows(&[], 1), [(0, u64::MAX)]);
    }
}
