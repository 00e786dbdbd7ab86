//! [`Recording`]: reads a trace: requests in order of arrival, on the replay's clock, fitted to the system.

use headstack_workload::quantity::counted;
use headstack_workload::{Kind, Recorded, Request};

use crate::fidelity::ReplayCounts;
use crate::issue::{Arrived, Slot};
use crate::mode::{LATEST_NS, Outside, Replay, ReplayError};

/// A source of recorded requests: replaces the batch by the next ones, in order of arrival; returns false at the end.
pub type Source<'a, E> = dyn FnMut(&mut Vec<Recorded>) -> Result<bool, E> + 'a;

/// A trace, read as far as the replay needs.
pub struct Recording<'a, E> {
    source: &'a mut Source<'a, E>,
    batch: Vec<Recorded>,
    at: usize,
    ended: bool,
    /// The request that was read last, and whether it is still to be taken.
    last: Arrived,
    is_next: bool,
    /// The first arrival, on the trace's clock and on the replay's.
    first_ns: u64,
    start_ns: u64,
    time_scale: f64,
    outside: Outside,
    requests_max: u64,
    time_max_ns: u64,
    capacity_bytes: u64,
    block_bytes: u64,
    /// Its counts.
    pub books: ReplayCounts,
}

impl<'a, E: From<ReplayError>> Recording<'a, E> {
    /// Creates an unread trace, for a system of `capacity_bytes` in blocks of `block_bytes`.
    pub fn new(replay: &Replay, capacity_bytes: u64, block_bytes: u32, source: &'a mut Source<'a, E>) -> Self {
        Recording {
            source,
            batch: Vec::new(),
            at: 0,
            ended: false,
            last: Arrived::default(),
            is_next: false,
            first_ns: 0,
            start_ns: replay.start_ns,
            time_scale: replay.mode.time_scale(),
            outside: replay.outside,
            requests_max: replay.requests_max.unwrap_or(u64::MAX),
            time_max_ns: replay.time_max_ns.unwrap_or(u64::MAX),
            capacity_bytes,
            block_bytes: u64::from(block_bytes),
            books: ReplayCounts::default(),
        }
    }

    /// Returns the next request without taking it; `None` at the end.
    ///
    /// # Errors
    /// Those of the source; a request that cannot be replayed.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<&Arrived>, E> {
        if !self.is_next {
            self.read()?;
        }
        Ok(self.is_next.then_some(&self.last))
    }

    /// Takes the next request and returns it with its slot; it stays valid until the next call; `None` at the end.
    /// Calls `hear` with recorded completions up to its arrival, as [`ReplayCounts::record_read`] does.
    ///
    /// # Errors
    /// As for [`peek`](Self::peek).
    #[inline]
    pub fn take(&mut self, hear: impl FnMut(u64, Slot)) -> Result<Option<(Slot, &Arrived)>, E> {
        if self.peek()?.is_none() {
            return Ok(None);
        }
        self.is_next = false;
        Ok(Some((self.books.record_read(&self.last, hear), &self.last)))
    }

    /// Reads up to the next request that is replayed.
    fn read(&mut self) -> Result<(), E> {
        while !self.is_next && !self.ended {
            if let Some(&recorded) = self.batch.get(self.at) {
                self.at += 1;
                self.is_next = self.arrive(&recorded)?;
            } else {
                self.refill()?;
            }
        }
        Ok(())
    }

    #[cold]
    fn refill(&mut self) -> Result<(), E> {
        self.at = 0;
        self.batch.clear();
        self.ended = !(self.source)(&mut self.batch)?;
        Ok(())
    }

    /// Accepts a request, unless it is left out or outside the limits of the replay; returns whether it was accepted.
    #[inline]
    fn arrive(&mut self, recorded: &Recorded) -> Result<bool, ReplayError> {
        let number = self.books.recorded + 1;
        if number == 1 {
            self.first_ns = recorded.arrival_ns;
        }
        let refuse = |message: String| ReplayError::Request { number, message };
        let since_first = |at_ns: u64| at_ns.checked_sub(self.first_ns);
        let arrival_ns = since_first(recorded.arrival_ns).filter(|&at_ns| at_ns >= self.books.last_arrival_ns);
        let arrival_ns = arrival_ns.ok_or_else(|| refuse("arrives before the previous request".to_owned()))?;
        if number > self.requests_max || arrival_ns > self.time_max_ns {
            self.ended = true;
            return Ok(false);
        }
        if recorded.completion_ns.is_some_and(|at_ns| at_ns < recorded.arrival_ns) {
            return Err(refuse("completes before it arrives".to_owned()));
        }
        let completion_ns = recorded.completion_ns.and_then(since_first);
        let scaled_ns = match self.time_scale {
            1.0 => arrival_ns,
            scale => (arrival_ns as f64 * scale).round() as u64,
        };
        if scaled_ns.max(arrival_ns).max(completion_ns.unwrap_or(0)) >= LATEST_NS {
            return Err(refuse("arrives more than 73 years after the first request".to_owned()));
        }
        self.books.recorded = number;
        self.books.last_arrival_ns = arrival_ns;
        self.books.without_completion += u64::from(completion_ns.is_none());
        let Some(request) = self.fit(&recorded.request).map_err(refuse)? else {
            return Ok(false);
        };
        let start_ns = self.start_ns;
        self.last = Arrived {
            number,
            arrival_ns: start_ns + arrival_ns,
            scheduled_ns: start_ns + scaled_ns,
            completion_ns: completion_ns.map(|at_ns| start_ns + at_ns),
            request,
            pre_flush: recorded.pre_flush,
        };
        self.books.pre_flushes += u64::from(recorded.pre_flush);
        Ok(true)
    }

    /// Returns notes on changes to the trace's requests.
    pub fn notes(&self) -> Vec<String> {
        let (block, capacity, of) = (self.block_bytes, self.capacity_bytes, self.books.recorded);
        let counts = [
            (self.books.rounded, format!("widened to whole blocks of {block} bytes")),
            (self.books.folded, format!("folded onto the {capacity} bytes of the system")),
            (self.books.dropped, format!("dropped, since they are outside the {capacity} bytes of the system")),
            (self.books.pre_flushes, "issued after their own flush (PREFLUSH), which counts as a request".to_owned()),
            (self.books.without_completion, "without a recorded completion".to_owned()),
        ];
        let some = counts.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| format!("{count} of {} {what}", counted(of, "request"))).collect()
    }

    /// Returns the request in whole blocks of the system, with every block that the recorded one touched; `None` if it
    /// is outside and such requests are dropped.
    #[inline]
    fn fit(&mut self, recorded: &Request) -> Result<Option<Request>, String> {
        if recorded.kind == Kind::Flush {
            return Ok(Some(Request { offset_bytes: 0, length_bytes: 0, ..*recorded }));
        }
        let (offset, length) = (recorded.offset_bytes, u64::from(recorded.length_bytes));
        let place = || format!("{length} bytes at {offset}");
        let start = offset - self.behind_block_start(offset);
        // A transfer of no bytes becomes one of the block it names: drives have no other command.
        let end = offset.checked_add(length.max(1)).and_then(|end| match self.behind_block_start(end) {
            0 => Some(end),
            into => end.checked_add(self.block_bytes - into),
        });
        let end = end.ok_or_else(|| format!("{}: its end must fit 64 bits", place()))?;
        let whole = end - start;
        let length_bytes = u32::try_from(whole).map_err(|_| format!("{}: must be shorter than 4 GiB", place()))?;
        let (mut start, capacity) = (start, self.capacity_bytes);
        if end > capacity {
            match self.outside {
                Outside::Fold if whole <= capacity => {
                    self.books.folded += 1;
                    start = (start % capacity).min(capacity - whole);
                }
                Outside::Drop => {
                    self.books.dropped += 1;
                    return Ok(None);
                }
                Outside::Refuse => {
                    return Err(format!(
                        "{}; the system ends at {capacity}; outside: use fold to move such requests into it, drop to \
                         omit them",
                        place()
                    ));
                }
                Outside::Fold => return Err(format!("{}; the system ends at {capacity}", place())),
            }
        }
        self.books.rounded += u64::from(whole != length);
        Ok(Some(Request { offset_bytes: start, length_bytes, ..*recorded }))
    }

    /// Returns the distance of a byte from the beginning of its block. Nearly all blocks are powers of two, and a
    /// division takes as long as much of the rest.
    #[inline]
    fn behind_block_start(&self, byte: u64) -> u64 {
        if self.block_bytes.is_power_of_two() { byte & (self.block_bytes - 1) } else { byte % self.block_bytes }
    }
}
