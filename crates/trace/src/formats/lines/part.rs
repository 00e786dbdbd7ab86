//! [`Part`]: the requests of a chunk, with names numbered within it, so that chunks are parsed in parallel.

use rustc_hash::FxHashMap;

use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError};
use crate::record::Record;

/// Number of rejects of a chunk kept with their reasons; the rest are only counted.
const REJECTS_KEPT: usize = 10;

/// The requests of a chunk. It is reused for later chunks and keeps its names, so that it soon allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// The requests.
    pub(super) records: Vec<Record>,
    /// Names of their devices.
    pub(crate) devices: Names,
    /// Names of their processes: number, blank, name.
    pub(crate) processes: Names,
    /// Number of lines, including those without a request.
    pub(super) lines: u64,
    counts: Vec<(&'static str, u64)>,
    rejected: u64,
    rejects: Vec<(u64, Problem)>,
}

impl Part {
    /// Clears the requests, not the names.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.counts.clear();
        self.rejects.clear();
        (self.lines, self.rejected) = (0, 0);
    }

    /// Increments the count of `what`.
    pub(crate) fn count(&mut self, what: &'static str) {
        match self.counts.iter_mut().find(|(counted, _)| *counted == what) {
            Some((_, number)) => *number += 1,
            None => self.counts.push((what, 1)),
        }
    }

    /// Adds `count` requests like `record`, which is the last of them; at most `most` are kept.
    pub(crate) fn repeat(&mut self, record: Record, count: u64, most: u64) {
        self.records.extend(std::iter::repeat_n(record, (count.min(most) - 1) as usize));
        if count > most {
            let (what, left_out) = ("requests omitted, of lines that represent more than 100", count - most);
            match self.counts.iter_mut().find(|(counted, _)| *counted == what) {
                Some((_, number)) => *number = number.saturating_add(left_out),
                None => self.counts.push((what, left_out)),
            }
        }
    }

    /// Rejects the line that was read last.
    #[cold]
    pub(super) fn reject(&mut self, problem: Problem) {
        self.rejected += 1;
        if self.rejects.len() < REJECTS_KEPT {
            self.rejects.push((self.lines, problem));
        }
    }

    /// Moves everything to `out`, with the names of the whole trace. The chunk began after line `line` of `file`.
    ///
    /// # Errors
    /// The first bad line, unless such lines are skipped.
    pub(super) fn hand_over(&mut self, file: &str, line: u64, out: &mut Collector) -> Result<(), TraceError> {
        let unnamed = self.rejected - self.rejects.len() as u64;
        for (at, problem) in self.rejects.drain(..) {
            out.reject(file, Place::Line(line + at), problem)?;
        }
        out.meta.rejected += unnamed;
        for (what, number) in self.counts.drain(..) {
            out.meta.count(what, number);
        }
        self.devices.number(|name| out.device(name));
        self.processes.number(|name| {
            let (pid, name) = name.split_once(' ').unwrap_or((name, ""));
            out.process(pid.parse().unwrap_or_default(), name) - 1
        });
        if !self.devices.is_global() || !self.processes.is_global() {
            for record in &mut self.records {
                record.device = self.devices.global[record.device as usize];
                if record.process > 0 {
                    record.process = self.processes.global[record.process as usize - 1] + 1;
                }
            }
        }
        if out.records.is_empty() {
            std::mem::swap(&mut out.records, &mut self.records);
        } else {
            out.records.append(&mut self.records);
        }
        Ok(())
    }
}

/// Names in order of first occurrence.
#[derive(Debug, Default)]
pub(crate) struct Names {
    index: FxHashMap<Vec<u8>, u32>,
    list: Vec<String>,
    /// Their numbers in the whole trace, as far as requested.
    global: Vec<u32>,
    /// The last name requested, since consecutive requests are often to one device.
    last: u32,
    joined: Vec<u8>,
}

impl Names {
    /// The number of a name.
    ///
    /// # Errors
    /// When it is not text.
    #[inline]
    pub(crate) fn of(&mut self, field: &'static str, name: &[u8]) -> Result<u32, Problem> {
        if let Some(last) = self.list.get(self.last as usize)
            && last.as_bytes() == name
        {
            return Ok(self.last);
        }
        self.find(field, name)
    }

    /// The number of the name composed of `before`, `between` and `after`.
    ///
    /// # Errors
    /// When it is not text.
    #[inline]
    pub(crate) fn of_pair(
        &mut self,
        field: &'static str,
        before: &[u8],
        between: u8,
        after: &[u8],
    ) -> Result<u32, Problem> {
        if let Some(last) = self.list.get(self.last as usize)
            && let Some((start, end)) = last.as_bytes().split_at_checked(before.len())
            && start == before
            && end.split_first() == Some((&between, after))
        {
            return Ok(self.last);
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        joined.extend_from_slice(before);
        joined.push(between);
        joined.extend_from_slice(after);
        let found = self.find(field, &joined);
        self.joined = joined;
        found
    }

    /// The number of a name that is a number below 2^32, in any spelling.
    ///
    /// # Errors
    /// When it is no such number.
    #[inline]
    pub(crate) fn of_number(&mut self, field: &'static str, text: &[u8]) -> Result<u32, Problem> {
        if crate::text::whole(text).is_none_or(|number| number > u64::from(u32::MAX)) {
            return Err(crate::error::refused(field, text, "a whole number below 2^32"));
        }
        let zeros = text.iter().take_while(|&&digit| digit == b'0').count().min(text.len() - 1);
        self.of(field, &text[zeros..])
    }

    fn find(&mut self, field: &'static str, name: &[u8]) -> Result<u32, Problem> {
        if let Some(&index) = self.index.get(name) {
            self.last = index;
            return Ok(index);
        }
        let text = std::str::from_utf8(name).map_err(|_| crate::error::refused(field, name, "UTF-8 text"))?;
        let index = u32::try_from(self.list.len()).map_err(|_| (field, "too many different names".to_owned()))?;
        self.list.push(text.to_owned());
        self.index.insert(name.to_owned(), index);
        self.last = index;
        Ok(index)
    }

    /// Requests global numbers for new names, in order of first occurrence.
    fn number(&mut self, mut number: impl FnMut(&str) -> u32) {
        for name in &self.list[self.global.len()..] {
            self.global.push(number(name));
        }
    }

    /// Whether numbers equal those of the whole trace.
    fn is_global(&self) -> bool {
        self.global.iter().enumerate().all(|(local, &global)| local == global as usize)
    }
}
