//! [`Streams`]: detects sequential streams and reads ahead of them.

use crate::description::array::Prefetch;

/// A sequence of requests, each beginning where the last one ended.
#[derive(Clone, Copy, Debug)]
struct Stream {
    next_bytes: u64,
    requests: u32,
    /// Everything below this is in the cache or being read.
    read_to_bytes: u64,
    used: u64,
}

/// The streams that are tracked; a new one replaces the one that has been silent for longest.
#[derive(Clone, Debug)]
pub struct Streams {
    settings: Option<Prefetch>,
    streams: Vec<Stream>,
    clock: u64,
}

impl Streams {
    /// Creates an empty set of streams; `None` tracks none.
    pub fn new(settings: Option<Prefetch>) -> Self {
        Streams { settings, streams: Vec::new(), clock: 0 }
    }

    /// Records a request and returns the run to read ahead now, if any. Each run is half of the read-ahead window, to
    /// keep reads long.
    pub fn see(&mut self, offset: u64, length: u64) -> Option<(u64, u64)> {
        let settings = self.settings?;
        self.clock += 1;
        let end = offset + length;
        let stream_index = self.streams.iter().position(|stream| stream.next_bytes == offset);
        let Some(at) = stream_index else {
            let new = Stream { next_bytes: end, requests: 1, read_to_bytes: end, used: self.clock };
            if self.streams.len() < settings.streams_max as usize {
                self.streams.push(new);
            } else if let Some(silent) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
                *silent = new;
            }
            return None;
        };
        let stream = &mut self.streams[at];
        stream.next_bytes = end;
        stream.requests = stream.requests.saturating_add(1);
        stream.used = self.clock;
        stream.read_to_bytes = stream.read_to_bytes.max(end);
        let ahead = stream.read_to_bytes - end;
        if stream.requests <= settings.after_requests || ahead > settings.ahead_bytes / 2 {
            return None;
        }
        let from = stream.read_to_bytes;
        stream.read_to_bytes = end + settings.ahead_bytes;
        Some((from, stream.read_to_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_its_requests_and_read_ahead_in_halves() {
        let settings = Prefetch { after_requests: 2, ahead_bytes: 100, streams_max: 2 };
        let mut streams = Streams::new(Some(settings));
        assert_eq!(streams.see(0, 10), None);
        assert_eq!(streams.see(10, 10), None);
        assert_eq!(streams.see(20, 10), Some((30, 130)));
        for at in (30..70).step_by(10) {
            assert_eq!(streams.see(at, 10), None, "{at}");
        }
        assert_eq!(streams.see(70, 10), Some((130, 180)));
        // Two other streams push it out.
        streams.see(1000, 10);
        streams.see(2000, 10);
        assert_eq!(streams.see(80, 10), None);
        assert_eq!(streams.streams.len(), 2);
    }
}
