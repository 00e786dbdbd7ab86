//! [`Port`]: the drive's own connection to the host, which carries one transfer at a time. The shared part of the path
//! is a [`crate::link::Link`].

/// A port with one running transfer and at most one reserved transfer, for the media access in progress.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    free_ns: u64,
    promised: Option<(u64, u64)>,
    /// Time that the port carried data, in ns.
    pub busy_ns: u64,
}

impl Port {
    /// Creates an idle port.
    pub fn new() -> Self {
        Port { free_ns: 0, promised: None, busy_ns: 0 }
    }

    /// Cancels all transfers.
    pub fn reset(&mut self, now_ns: u64) {
        (self.free_ns, self.promised) = (now_ns, None);
    }

    /// Performs a transfer that is ready at `ready_ns`; returns when the transfer ends. A transfer that fits before the
    /// reserved one goes first.
    #[inline]
    pub fn carry(&mut self, ready_ns: u64, duration_ns: u64) -> u64 {
        self.busy_ns += duration_ns;
        let mut begin = ready_ns.max(self.free_ns);
        if let Some((promised_begin, promised_end)) = self.promised {
            if begin + duration_ns <= promised_begin {
                self.free_ns = begin + duration_ns;
                return self.free_ns;
            }
            self.promised = None;
            begin = begin.max(promised_end);
        }
        self.free_ns = begin + duration_ns;
        self.free_ns
    }

    /// Reserves a transfer that can start at `ready_ns` and cannot end before `no_earlier_ns`, when the last sector
    /// comes off the media. Returns when the transfer ends.
    #[inline]
    pub fn promise(&mut self, ready_ns: u64, duration_ns: u64, no_earlier_ns: u64) -> u64 {
        self.busy_ns += duration_ns;
        if let Some((_, end)) = self.promised.take() {
            self.free_ns = self.free_ns.max(end);
        }
        let begin = ready_ns.max(self.free_ns);
        let end = (begin + duration_ns).max(no_earlier_ns);
        self.promised = Some((begin, end));
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_transfer_at_a_time() {
        let mut port = Port::new();
        assert_eq!(port.promise(100, 50, 0), 150);
        // A transfer goes before the reserved one if it fits, otherwise after it.
        assert_eq!(port.carry(0, 80), 80);
        assert_eq!(port.carry(60, 21), 171);
        assert_eq!(port.carry(0, 10), 181);
        assert_eq!(port.carry(500, 10), 510);
        assert_eq!(port.busy_ns, 171);
    }

    #[test]
    fn a_promised_transfer_ends_with_the_media() {
        let mut port = Port::new();
        assert_eq!(port.promise(100, 50, 400), 400);
        assert_eq!(port.promise(0, 50, 0), 450, "the next reservation waits");
    }
}
