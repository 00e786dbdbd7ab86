//! [`Link`]s shared by several devices: buses, loops, expanders and networks.
//!
//! A transfer is reserved as soon as it is known. For a drive, this is when the arm takes the command, up to a few
//! turns ahead. A link therefore keeps a calendar of reservations, and a transfer uses the free time from the moment
//! when it is ready. It may be split into pieces, because devices that share a link disconnect and reconnect, so that
//! no usable time is lost. The calendar stays short, because past reservations are dropped.

pub use crate::description::link::{LinkDescription, LinkKind};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the host.
    Read,
    /// Away from the host.
    Write,
}

/// Minimum length of a piece; for less, acquiring the link is not worthwhile (about one burst in 1998).
const PIECE_MIN_NS: u64 = 5_000;

/// A link in virtual time.
#[derive(Clone, Debug)]
pub struct Link {
    description: LinkDescription,
    lanes: [Calendar; 2],
    /// Time that the link was busy, summed over its lanes, in ns.
    pub busy_ns: u64,
    /// Time that transfers and commands waited for the link, in ns.
    pub waited_ns: u64,
    /// Number of data transfers.
    pub transfers: u64,
}

impl Link {
    /// Creates an idle link.
    pub fn new(description: &LinkDescription) -> Self {
        let lanes = [Calendar::default(), Calendar::default()];
        Link { description: description.clone(), lanes, busy_ns: 0, waited_ns: 0, transfers: 0 }
    }

    /// Returns the link's description.
    pub fn description(&self) -> &LinkDescription {
        &self.description
    }

    /// Cancels all reservations.
    pub(crate) fn reset(&mut self) {
        self.lanes = [Calendar::default(), Calendar::default()];
    }

    fn lane(&mut self, direction: Direction) -> &mut Calendar {
        &mut self.lanes[usize::from(self.description.full_duplex && direction == Direction::Write)]
    }

    /// Transfers `bytes` that are ready at `ready_ns`; returns when the last byte has arrived. `ns_per_byte` is the
    /// pace of a sender or receiver that occupies the link at a slower rate, or 0 if there is none.
    ///
    /// Overhead precedes the transfer. On an idle link it ends by `ready_ns`, because device times are measured without
    /// other traffic on the link and include this overhead. A shared link adds only waiting time.
    pub fn carry(&mut self, now_ns: u64, ready_ns: u64, bytes: u64, ns_per_byte: f64, direction: Direction) -> u64 {
        let overhead_ns = match direction {
            Direction::Read => self.description.read_ns,
            Direction::Write => self.description.write_ns,
        };
        let data_ns = (bytes as f64 * self.description.ns_per_byte.max(ns_per_byte) + 0.5) as u64;
        self.transfers += 1;
        let end_ns = self.take(now_ns, ready_ns.saturating_sub(overhead_ns), overhead_ns + data_ns, direction);
        end_ns + self.description.latency_ns
    }

    /// Delivers a command at `now_ns`; returns how long the command waited for the link, in ns.
    pub fn deliver_command(&mut self, now_ns: u64) -> u64 {
        let command_ns = self.description.command_ns;
        if command_ns == 0 {
            return 0;
        }
        self.take(now_ns, now_ns, command_ns, Direction::Write) - command_ns - now_ns
    }

    fn take(&mut self, now_ns: u64, from_ns: u64, length_ns: u64, direction: Direction) -> u64 {
        let end_ns = self.lane(direction).take(now_ns, from_ns, length_ns);
        self.busy_ns += length_ns;
        self.waited_ns += end_ns - length_ns - from_ns;
        end_ns
    }
}

/// Disjoint reserved intervals in ascending order.
#[derive(Clone, Debug, Default)]
struct Calendar {
    taken: Vec<(u64, u64)>,
}

impl Calendar {
    /// Reserves `length_ns` of free time from `from_ns` on; returns the end of the last piece. Later calls must not
    /// start more than [`KEPT_NS`] before this call's `now_ns`.
    fn take(&mut self, now_ns: u64, from_ns: u64, length_ns: u64) -> u64 {
        let horizon_ns = now_ns.min(from_ns).saturating_sub(KEPT_NS);
        let past = self.taken.partition_point(|&(_, end)| end < horizon_ns);
        if past > FORGET_AT {
            self.taken.drain(..past);
        }
        let mut at = self.taken.partition_point(|&(_, end)| end <= from_ns);
        let (mut begin, mut left) = (from_ns, length_ns);
        loop {
            let Some(&(taken_from, taken_to)) = self.taken.get(at) else {
                self.insert(at, begin, begin + left);
                return begin + left;
            };
            let gap = taken_from.saturating_sub(begin);
            if gap >= left {
                self.insert(at, begin, begin + left);
                return begin + left;
            }
            if gap >= PIECE_MIN_NS {
                // The gap was merged with the interval after it: `at` is this interval, or its union with the previous
                // one.
                left -= gap;
                at = self.insert(at, begin, taken_from);
            }
            begin = taken_to;
            at += 1;
        }
    }

    /// Inserts an interval before index `at` and merges it with its neighbors; returns the index of the merged
    /// interval.
    fn insert(&mut self, at: usize, from: u64, to: u64) -> usize {
        if from == to {
            return at;
        }
        debug_assert!(from < to, "intervals are not empty");
        debug_assert!(at == 0 || self.taken[at - 1].1 <= from, "intervals are ascending and disjoint");
        debug_assert!(self.taken.get(at).is_none_or(|next| to <= next.0), "intervals are ascending and disjoint");
        let joins_before = at > 0 && self.taken[at - 1].1 >= from;
        let joins_after = self.taken.get(at).is_some_and(|&(begin, _)| begin <= to);
        match (joins_before, joins_after) {
            (true, true) => {
                self.taken[at - 1].1 = self.taken[at].1;
                self.taken.remove(at);
                at - 1
            }
            (true, false) => {
                self.taken[at - 1].1 = to;
                at - 1
            }
            (false, true) => {
                self.taken[at].0 = from;
                at
            }
            (false, false) => {
                self.taken.insert(at, (from, to));
                at
            }
        }
    }
}

/// Maximum time by which a transfer can start before it is reserved, because overhead precedes it.
const KEPT_NS: u64 = 10_000_000;
/// Number of past intervals that are dropped together.
const FORGET_AT: usize = 32;

/// Shared links between a device and the sender of its commands; empty for a single device.
#[derive(Debug)]
pub struct Upstream<'a> {
    now_ns: u64,
    links: &'a mut [Link],
    hops: &'a [u32],
    /// A port shared by parts of the device.
    port: Option<&'a mut Link>,
}

impl Upstream<'_> {
    /// Returns an upstream without shared links.
    #[inline]
    pub fn none() -> Upstream<'static> {
        Upstream { now_ns: 0, links: &mut [], hops: &[], port: None }
    }

    /// Returns an upstream over the links `hops` of `links` at the current time `now_ns`.
    #[inline]
    pub fn new<'a>(now_ns: u64, links: &'a mut [Link], hops: &'a [u32]) -> Upstream<'a> {
        Upstream { now_ns, links, hops, port: None }
    }

    /// Returns an upstream over the same links for a part of the device that is connected through `port`.
    pub fn through<'b>(&'b mut self, now_ns: u64, port: &'b mut Link) -> Upstream<'b> {
        Upstream { now_ns, links: &mut *self.links, hops: self.hops, port: Some(port) }
    }

    /// Transfers `bytes`, ready at `ready_ns`, over every link; returns when the transfer ends. The device's own port
    /// needs `port_ns_per_byte` and finishes at `port_end_ns`. Links forward data while they receive.
    #[inline]
    pub fn carry(
        &mut self,
        ready_ns: u64,
        bytes: u64,
        port_ns_per_byte: f64,
        port_end_ns: u64,
        direction: Direction,
    ) -> u64 {
        if self.hops.is_empty() && self.port.is_none() {
            return port_end_ns;
        }
        self.carry_shared(ready_ns, bytes, port_ns_per_byte, port_end_ns, direction)
    }

    #[inline(never)]
    fn carry_shared(
        &mut self,
        ready_ns: u64,
        bytes: u64,
        port_ns_per_byte: f64,
        port_end_ns: u64,
        direction: Direction,
    ) -> u64 {
        let mut end_ns = port_end_ns;
        if let Some(port) = &mut self.port {
            end_ns = end_ns.max(port.carry(self.now_ns, ready_ns, bytes, 0.0, direction));
        }
        for &hop in self.hops {
            let link = &mut self.links[hop as usize];
            let pace = if link.description.kind.shares_wire() { port_ns_per_byte } else { 0.0 };
            end_ns = end_ns.max(link.carry(self.now_ns, ready_ns, bytes, pace, direction));
        }
        end_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bus() -> Link {
        Link::new(&LinkDescription {
            name: "bus".to_owned(),
            kind: LinkKind::Scsi,
            ns_per_byte: 25.0,
            command_ns: 60_000,
            read_ns: 50_000,
            write_ns: 50_000,
            latency_ns: 0,
            full_duplex: false,
            held_by_command: false,
        })
    }

    #[test]
    fn an_idle_bus_adds_only_its_bytes() {
        let mut link = bus();
        assert_eq!(link.carry(0, 1_000_000, 4096, 0.0, Direction::Read), 1_102_400);
        assert_eq!((link.busy_ns, link.waited_ns), (152_400, 0));
    }

    #[test]
    fn a_taken_bus_is_waited_for_and_a_gap_is_used() {
        let mut link = bus();
        link.carry(0, 1_000_000, 4096, 0.0, Direction::Read);
        // A transfer that is reserved later but ready earlier: 100 us of its 152 us fit before the first transfer (from
        // 950 us on); the rest follows.
        assert_eq!(link.carry(0, 900_000, 4096, 0.0, Direction::Read), 1_102_400 + 152_400 - 100_000);
        assert_eq!(link.waited_ns, 1_154_800 - 1_002_400);
        assert_eq!(link.lanes[0].taken, vec![(850_000, 1_154_800)], "the two intervals are merged");
    }

    #[test]
    fn directions_share_only_a_half_duplex_link() {
        let mut half = bus();
        let mut full = Link::new(&LinkDescription { full_duplex: true, ..bus().description });
        for (link, end) in [(&mut half, 100_000 + 2 * 102_400 + 50_000), (&mut full, 202_400)] {
            link.carry(0, 100_000, 4096, 0.0, Direction::Read);
            assert_eq!(link.carry(0, 100_000, 4096, 0.0, Direction::Write), end);
        }
    }

    #[test]
    fn commands_wait_for_the_bus() {
        let mut link = bus();
        assert_eq!(link.deliver_command(0), 0);
        assert_eq!(link.deliver_command(0), 60_000);
        assert_eq!(link.deliver_command(20_000), 100_000);
    }

    /// A shared bus, cable or loop is occupied at the pace of its slower end. A link that forwards frames is occupied
    /// only for its own transfer time.
    #[test]
    fn wires_that_devices_share_are_held_at_their_pace() {
        for kind in LinkKind::ALL {
            let held_ns_per_byte = match kind {
                LinkKind::Scsi | LinkKind::Ata | LinkKind::FcLoop => 40,
                LinkKind::Sata | LinkKind::Sas | LinkKind::Pci | LinkKind::Ethernet | LinkKind::Mirror => 25,
            };
            let mut links = [Link::new(&LinkDescription { kind, read_ns: 0, ..bus().description })];
            let mut way = Upstream::new(0, &mut links, &[0]);
            // Both transfers are ready at the same time, so the second waits while the first occupies the wire.
            let ends = [0; 2].map(|ready_ns| way.carry(ready_ns, 4096, 40.0, ready_ns + 4096 * 40, Direction::Read));
            assert_eq!(links[0].busy_ns, 2 * 4096 * held_ns_per_byte, "{kind:?}");
            assert_eq!(ends, [4096 * 40, (2 * 4096 * held_ns_per_byte).max(4096 * 40)], "{kind:?}");
        }
    }

    proptest! {
        /// For any reservations, intervals stay disjoint and ascending, and hold exactly the reserved time.
        #[test]
        fn calendars_conserve_time(asked in prop::collection::vec((0u64..2_000_000, 1u64..200_000), 1..60)) {
            let mut calendar = Calendar::default();
            for &(from, length) in &asked {
                let end = calendar.take(0, from, length);
                prop_assert!(end >= from + length);
            }
            prop_assert!(calendar.taken.windows(2).all(|pair| pair[0].1 < pair[1].0));
            let taken: u64 = calendar.taken.iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(taken, asked.iter().map(|(_, length)| length).sum::<u64>());
        }
    }
}
