//! [`Sorter`]: sorts files of any order by arrival, in bounded memory.

use crate::record::Record;

/// Number of requests held back. Files in order of completion need as many as arrive within the longest response time;
/// this is 12.6 MB.
const WINDOW: usize = 1 << 18;

/// Sorts requests within its window.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    held: Vec<Record>,
    /// Whether the held requests are unsorted.
    is_mixed: bool,
    newest_ns: u64,
    /// Requests that came too late for the returned part: the start of a new run.
    late: Option<Vec<Record>>,
    last_in_ns: u64,
    last_out_ns: u64,
    /// Number of records that arrived before their predecessor.
    pub(crate) moved: u64,
}

impl Sorter {
    /// Takes `incoming`, and moves to `batch`, which must be empty, all records that nothing can precede any more:
    /// everything at the `end`, and everything if the window is too short, which [`Sorter::begins_new_run`] reports.
    pub(crate) fn take(&mut self, incoming: &mut Vec<Record>, batch: &mut Vec<Record>, end: bool) {
        for record in incoming.iter() {
            self.moved += u64::from(record.arrival_ns < self.last_in_ns);
            self.last_in_ns = record.arrival_ns;
            self.is_mixed |= record.arrival_ns < self.newest_ns;
            self.newest_ns = self.newest_ns.max(record.arrival_ns);
        }
        let late = incoming.iter().position(|record| record.arrival_ns < self.last_out_ns);
        if let Some(first) = late {
            self.late = Some(incoming.split_off(first));
        }
        self.held.append(incoming);
        let keep = if end || late.is_some() { 0 } else { WINDOW };
        // Half a window more than is kept, so that most records are sorted twice at most.
        if keep > 0 && self.held.len() < keep + keep / 2 {
            return;
        }
        if std::mem::take(&mut self.is_mixed) {
            self.held.sort_by_key(|record| record.arrival_ns);
        }
        // Swapping the lists copies 33 % less than removing the front.
        let handed_out = self.held.len() - keep;
        batch.extend_from_slice(&self.held[handed_out..]);
        self.held.truncate(handed_out);
        std::mem::swap(&mut self.held, batch);
        if let Some(last) = batch.last() {
            self.last_out_ns = last.arrival_ns;
        }
    }

    /// Whether the next records belong to a new run, which begins before the end of the previous one; call it once all
    /// of that was returned.
    pub(crate) fn begins_new_run(&mut self) -> bool {
        let Some(late) = self.late.take() else {
            return false;
        };
        self.held = late;
        self.last_out_ns = 0;
        self.is_mixed = true;
        true
    }

    /// Whether a new run follows.
    pub(crate) fn has_late(&self) -> bool {
        self.late.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Operation;

    fn sorted(arrivals: &[u64], chunk: usize) -> (Vec<Vec<u64>>, u64) {
        let mut sorter = Sorter::default();
        let mut runs = vec![Vec::new()];
        let mut chunks = arrivals.chunks(chunk).peekable();
        loop {
            let part = chunks.next().unwrap_or_default();
            let mut incoming: Vec<Record> =
                part.iter().map(|&arrival_ns| Record::new(arrival_ns, Operation::Read, 0, 512)).collect();
            let mut batch = Vec::new();
            let end = chunks.peek().is_none();
            sorter.take(&mut incoming, &mut batch, end);
            runs.last_mut().unwrap().extend(batch.iter().map(|record| record.arrival_ns));
            if sorter.begins_new_run() {
                runs.push(Vec::new());
            } else if end {
                return (runs, sorter.moved);
            }
        }
    }

    #[test]
    fn sorts_within_the_window() {
        let mut arrivals: Vec<u64> = (0..3 * WINDOW as u64).collect();
        for pair in arrivals.chunks_mut(1_000) {
            pair.reverse();
        }
        let (runs, moved) = sorted(&arrivals, 10_000);
        assert_eq!(runs.len(), 1);
        assert!(runs[0].is_sorted() && runs[0].len() == arrivals.len());
        assert_eq!(moved, arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64);
    }

    #[test]
    fn one_far_ahead_is_passed_by_those_behind_it() {
        // Records after the first full window are in order, except for that one.
        let ahead = 2 * WINDOW as u64;
        let arrivals: Vec<u64> = [ahead].into_iter().chain(0..3 * WINDOW as u64).collect();
        let (runs, moved) = sorted(&arrivals, 10_000);
        assert_eq!((runs.len(), moved), (1, 1));
        assert!(runs[0].is_sorted() && runs[0].len() == arrivals.len());
    }

    #[test]
    fn a_late_record_starts_a_new_sort_run() {
        let half = 2 * WINDOW as u64;
        let arrivals: Vec<u64> = (half..2 * half).chain(0..half).collect();
        let (runs, moved) = sorted(&arrivals, 4_096);
        assert_eq!(moved, 1);
        assert!(runs.len() > 1 && runs.iter().all(|run| run.is_sorted()));
        let mut all: Vec<u64> = runs.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..2 * half));
    }
}
