//! [`Ends`]: detects which earlier request a request continues.

/// Number of recent requests per device that a run may continue; the same number as in the analysis.
const RECENT: usize = crate::analyze::STREAMS;

/// Ends of the most recent requests to one device, with the request numbers.
#[derive(Default)]
pub(super) struct Ends {
    recent: Vec<(u64, u32)>,
}

impl Ends {
    /// Returns the number of the request that this request continues, if any; `number` is the number of this request.
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
