//! [`Ends`]: detects which request continues which earlier one.

/// Number of recent requests per device that a run may continue: as many as the analysis follows.
const RECENT: usize = crate::analyze::STREAMS;

/// The last ends of requests to one device, with the numbers of the requests.
#[derive(Default)]
pub(super) struct Ends {
    recent: Vec<(u64, u32)>,
}

impl Ends {
    /// Returns the request that this one continues, if any; `number` is its own.
    pub(super) fn follow(&mut self, offset_bytes: u64, end_bytes: u64, number: u32) -> Option<u32> {
        let run_index = self.recent.iter().position(|&(end, _)| end == offset_bytes);
        let before = run_index.map(|index| self.recent.remove(index).1);
        if self.recent.len() == RECENT {
            self.recent.pop();
        }
        self.recent.insert(0, (end_bytes, number));
        before
    }
}
