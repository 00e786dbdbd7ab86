//! [`Streams`]: which reads are sequential, and how far ahead of them Linux reads.

/// Streams that are followed at once, one for each open file that is read in order.
const STREAMS_MAX: usize = 32;
/// First window of a stream, in pages (`get_init_ra_size` for a read of one page: four).
const FIRST_PAGES: u64 = 4;

/// A run of reads in ascending order.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// First page that the next read needs if it is sequential.
    next_page: u64,
    /// First page that was not read ahead.
    ahead_page: u64,
    window_pages: u64,
    used: u64,
}

/// Followed streams.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    window_max: u64,
    uses: u64,
}

impl Streams {
    /// Follows streams with windows of at most `window_max` pages; 0 switches read-ahead off.
    pub fn new(window_max: u64) -> Streams {
        Streams { streams: Vec::new(), window_max, uses: 0 }
    }

    /// Notes a read of pages `first` to `end`; returns the end of the pages to read, at least `end`.
    pub fn read(&mut self, first: u64, end: u64) -> u64 {
        if self.window_max == 0 {
            return end;
        }
        self.uses += 1;
        let used = self.uses;
        // A read may begin in the page where the last one ended.
        let is_next = |stream: &Stream| first == stream.next_page || first + 1 == stream.next_page;
        if let Some(stream) = self.streams.iter_mut().find(|stream| is_next(stream)) {
            (stream.next_page, stream.used) = (end, used);
            // The next window is read when the reader enters the last one.
            if end + stream.window_pages > stream.ahead_page {
                let from = stream.ahead_page.max(end);
                stream.window_pages = (2 * stream.window_pages).clamp(FIRST_PAGES, self.window_max);
                stream.ahead_page = from + stream.window_pages;
            }
            return stream.ahead_page;
        }
        // A read from the start of a file counts as sequential; any other has to continue first.
        let window_pages = if first == 0 { FIRST_PAGES.min(self.window_max) } else { 0 };
        let stream = Stream { next_page: end, ahead_page: end + window_pages, window_pages, used };
        if self.streams.len() < STREAMS_MAX {
            self.streams.push(stream);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = stream;
        }
        stream.ahead_page
    }

    /// Forgets all streams.
    pub fn reset(&mut self) {
        self.streams.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_up_to_the_limit() {
        let mut streams = Streams::new(32);
        let ends: Vec<u64> = (0..8).map(|page| streams.read(100 + page, 101 + page)).collect();
        assert_eq!(ends[0], 101, "a single read is not a stream");
        assert_eq!(ends[1], 106);
        assert!(ends.windows(2).all(|pair| pair[0] <= pair[1]));
        let far = (8..400).map(|page| streams.read(100 + page, 101 + page) - (101 + page)).max();
        assert!(far.is_some_and(|far| (32..=64).contains(&far)), "{far:?}");
    }

    #[test]
    fn random_reads_read_nothing_ahead() {
        let mut streams = Streams::new(32);
        for page in [500, 20, 90_000, 77, 1_000] {
            assert_eq!(streams.read(page, page + 2), page + 2);
        }
    }
}
