//! [`HostPort`]: the drive's end of the interface.

use crate::description::ssd::{Controller, Interface};
use crate::drive::port::Port;
use crate::link::{Direction, Upstream};

/// Time of a transfer.
#[inline]
pub fn transfer_ns(bytes: u32, ns_per_byte: f64) -> u64 {
    (f64::from(bytes) * ns_per_byte).round() as u64
}

/// The drive's end of the interface: every byte between host and drive passes here.
#[derive(Clone, Debug)]
pub struct HostPort {
    interface: Interface,
    ports: [Port; 2],
    /// The way through the controller, by direction, and the time of one byte on it.
    inside: [Port; 2],
    inside_ns_per_byte: [f64; 2],
    /// When the last transfer of each direction ends: data of one direction arrive in order.
    last_ns: [u64; 2],
}

impl HostPort {
    /// An idle port.
    pub fn new(interface: Interface, controller: &Controller) -> Self {
        HostPort {
            interface,
            ports: [Port::new(); 2],
            inside: [Port::new(); 2],
            inside_ns_per_byte: [controller.read_ns_per_byte, controller.write_ns_per_byte],
            last_ns: [0; 2],
        }
    }

    /// Carries data that are ready at `ready_ns`; returns when the last byte is there.
    #[inline]
    pub fn carry(&mut self, upstream: &mut Upstream, direction: Direction, ready_ns: u64, bytes: u32) -> u64 {
        let (port, ns_per_byte) = match direction {
            Direction::Read => (0, self.interface.read_ns_per_byte),
            Direction::Write => (usize::from(self.interface.full_duplex), self.interface.write_ns_per_byte),
        };
        let inside = direction as usize;
        let inside_end_ns = self.inside[inside].carry(ready_ns, transfer_ns(bytes, self.inside_ns_per_byte[inside]));
        // Both carry the same bytes at once, so that the slower one decides.
        let port_end_ns = self.ports[port].carry(ready_ns, transfer_ns(bytes, ns_per_byte)).max(inside_end_ns);
        let end_ns = upstream.carry(ready_ns, u64::from(bytes), ns_per_byte, port_end_ns, direction);
        self.last_ns[direction as usize] = self.last_ns[direction as usize].max(end_ns);
        self.last_ns[direction as usize]
    }
    /// Time that it carried data, summed over its directions.
    pub fn busy_ns(&self) -> u64 {
        self.ports.iter().map(|port| port.busy_ns).sum()
    }

    /// Drops all transfers; the port is free from `now_ns` on.
    pub fn reset(&mut self, now_ns: u64) {
        self.ports.iter_mut().chain(&mut self.inside).for_each(|port| port.reset(now_ns));
        self.last_ns = [now_ns; 2];
    }
}
