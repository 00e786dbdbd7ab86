//! [`Link`]s that several devices share: buses, loops, expanders, networks.
//!
//! A transfer is booked when it becomes known, which for a drive is when its arm takes the command, up to a few turns
//! ahead. So a link keeps a calendar of bookings, and a transfer takes the free time from the moment it is ready, in
//! pieces if necessary: devices that share a link disconnect and reconnect, so no usable time is lost. The calendar is
//! short, since the past is dropped.

pub use crate::description::link::{LinkDescription, LinkKind};

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the host.
    Read,
    /// Away from it.
    Write,
}

/// Pieces shorter than this are not worth taking the link for (about one burst of 1998).
const PIECE_MIN_NS: u64 = 5_000;

/// A link in virtual time.
#[derive(Clone, Debug)]
pub struct Link {
    description: LinkDescription,
    lanes: [Calendar; 2],
    /// Time that it was taken, lanes together.
    pub busy_ns: u64,
    /// Time that transfers and commands waited for it.
    pub waited_ns: u64,
    /// Data transfers.
    pub transfers: u64,
}

impl Link {
    /// An idle link.
    pub fn new(description: &LinkDescription) -> Self {
        let lanes = [Calendar::default(), Calendar::default()];
        Link { description: description.clone(), lanes, busy_ns: 0, waited_ns: 0, transfers: 0 }
    }

    /// Its description.
    pub fn description(&self) -> &LinkDescription {
        &self.description
    }

    /// Everything that was promised is off.
    pub(crate) fn reset(&mut self) {
        self.lanes = [Calendar::default(), Calendar::default()];
    }

    fn lane(&mut self, direction: Direction) -> &mut Calendar {
        &mut self.lanes[usize::from(self.description.full_duplex && direction == Direction::Write)]
    }

    /// Carries `bytes` that are ready at `ready_ns`; returns when the last of them has arrived. `ns_per_byte` is the
    /// pace of the sender or receiver if that is slower and holds the link meanwhile (0 otherwise).
    ///
    /// The overhead of a transfer precedes it: an idle link has finished it by `ready_ns`, since the known service time
    /// of a device, measured when it is the only one on its link, includes it. A link only adds the wait for it.
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

    /// Delivers a command at `now_ns`; returns how long it waited for the link.
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

/// Disjoint intervals that are taken, ascending.
#[derive(Clone, Debug, Default)]
struct Calendar {
    taken: Vec<(u64, u64)>,
}

impl Calendar {
    /// Takes `length_ns` of the free time from `from_ns` on; returns the end. No later call may begin more than
    /// [`KEPT_NS`] before `now_ns`.
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
                // Merged with the following one: `at` is still that interval, or its union with the previous one.
                left -= gap;
                at = self.insert(at, begin, taken_from);
            }
            begin = taken_to;
            at += 1;
        }
    }

    /// Adds an interval before place `at` and joins it to its neighbours; returns the place of the union.
    fn insert(&mut self, at: usize, from: u64, to: u64) -> usize {
        if from == to {
            return at;
        }
        debug_assert!(from < to, "an interval has a length");
        debug_assert!(at == 0 || self.taken[at - 1].1 <= from, "intervals are in order and apart");
        debug_assert!(self.taken.get(at).is_none_or(|next| to <= next.0), "intervals are in order and apart");
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

/// Longest time by which transfers begin before they are booked (their overhead precedes them).
const KEPT_NS: u64 = 10_000_000;
/// Past intervals are forgotten in batches.
const FORGET_AT: usize = 32;

/// The shared links between one device and its host; none for a single device.
#[derive(Debug)]
pub struct Upstream<'a> {
    now_ns: u64,
    links: &'a mut [Link],
    hops: &'a [u32],
    /// A port that parts of the device share.
    port: Option<&'a mut Link>,
}

impl Upstream<'_> {
    /// No shared links.
    #[inline]
    pub fn none() -> Upstream<'static> {
        Upstream { now_ns: 0, links: &mut [], hops: &[], port: None }
    }

    /// The links `hops` of `links`; `now_ns` is the present.
    #[inline]
    pub fn new<'a>(now_ns: u64, links: &'a mut [Link], hops: &'a [u32]) -> Upstream<'a> {
        Upstream { now_ns, links, hops, port: None }
    }

    /// The same links for a part of the device, which reaches them through `port`.
    pub fn through<'b>(&'b mut self, now_ns: u64, port: &'b mut Link) -> Upstream<'b> {
        Upstream { now_ns, links: &mut *self.links, hops: self.hops, port: Some(port) }
    }

    /// Carries `bytes`, ready at `ready_ns`, which the device's own port has carried at `port_end_ns`, at
    /// `port_ns_per_byte`; returns when they have passed everything. Links forward while they receive.
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
    fn an_idle_bus_adds_its_bytes_alone() {
        let mut link = bus();
        assert_eq!(link.carry(0, 1_000_000, 4096, 0.0, Direction::Read), 1_102_400);
        assert_eq!((link.busy_ns, link.waited_ns), (152_400, 0));
    }

    #[test]
    fn a_taken_bus_is_waited_for_and_a_gap_is_used() {
        let mut link = bus();
        link.carry(0, 1_000_000, 4096, 0.0, Direction::Read);
        // Booked later, ready before: 850 of 152 us fit before the first one (from 950 us), the rest comes after it.
        assert_eq!(link.carry(0, 900_000, 4096, 0.0, Direction::Read), 1_102_400 + 152_400 - 100_000);
        assert_eq!(link.waited_ns, 1_154_800 - 1_002_400);
        assert_eq!(link.lanes[0].taken, vec![(850_000, 1_154_800)], "one interval is left");
    }

    #[test]
    fn directions_share_a_half_duplex_link_alone() {
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

    /// A bus, a cable or a loop is held at the pace of the slower end; what forwards frames is held for its own time alone.
    #[test]
    fn wires_that_devices_share_are_held_at_their_pace() {
        for kind in LinkKind::ALL {
            let held_ns_per_byte = match kind {
                LinkKind::Scsi | LinkKind::Ata | LinkKind::FcLoop => 40,
                LinkKind::Sata | LinkKind::Sas | LinkKind::Pci | LinkKind::Ethernet | LinkKind::Mirror => 25,
            };
            let mut links = [Link::new(&LinkDescription { kind, read_ns: 0, ..bus().description })];
            let mut way = Upstream::new(0, &mut links, &[0]);
            // Both are ready at once: the second waits for as long as the first holds the wire.
            let ends = [0; 2].map(|ready_ns| way.carry(ready_ns, 4096, 40.0, ready_ns + 4096 * 40, Direction::Read));
            assert_eq!(links[0].busy_ns, 2 * 4096 * held_ns_per_byte, "{kind:?}");
            assert_eq!(ends, [4096 * 40, (2 * 4096 * held_ns_per_byte).max(4096 * 40)], "{kind:?}");
        }
    }

    proptest! {
        /// Whatever is asked for: intervals stay disjoint, ascending and apart, and hold exactly what was taken.
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
