//! [`Wires`]: the network interfaces of hosts and clients.

use crate::description::stack::ClusterNetwork;

/// Interfaces in virtual time. A message leaves its sender, and then passes the receiver's interface, in order of
/// sending.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    network: ClusterNetwork,
    /// When each interface is free to send and to receive.
    sending_ns: Vec<u64>,
    receiving_ns: Vec<u64>,
    /// Time that interfaces carried bytes, in ns.
    pub carried_ns: u64,
    /// Time that messages waited for an interface, in ns.
    pub waited_ns: u64,
}

impl Wires {
    /// Creates idle interfaces.
    pub fn new(network: &ClusterNetwork, interfaces: u32) -> Wires {
        let free = vec![0; interfaces as usize];
        Wires { network: *network, sending_ns: free.clone(), receiving_ns: free, carried_ns: 0, waited_ns: 0 }
    }

    /// Carries a message; returns when its last byte arrives. A message within a host takes no time.
    pub fn carry(&mut self, now_ns: u64, from: u32, to: u32, bytes: u64) -> u64 {
        if from == to {
            return now_ns;
        }
        if bytes == 0 {
            return now_ns + self.network.round_trip_ns / 2;
        }
        let wire_ns = self.network.wire_ns(bytes);
        let sent_ns = now_ns.max(self.sending_ns[from as usize]);
        self.sending_ns[from as usize] = sent_ns + wire_ns;
        // The switch passes bytes on as they arrive.
        let received_ns = sent_ns.max(self.receiving_ns[to as usize]);
        self.receiving_ns[to as usize] = received_ns + wire_ns;
        self.carried_ns += 2 * wire_ns;
        self.waited_ns += received_ns - now_ns;
        received_ns + wire_ns + self.network.round_trip_ns / 2
    }

    /// Returns the directions of all interfaces.
    pub fn directions(&self) -> u32 {
        2 * self.sending_ns.len() as u32
    }

    /// Drops all messages.
    pub fn reset(&mut self) {
        self.sending_ns.fill(0);
        self.receiving_ns.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_for_the_interfaces_at_both_ends() {
        let network = ClusterNetwork { round_trip_ns: 20, bytes_per_s: 1_000_000_000, clients: 1 };
        let mut wires = Wires::new(&network, 3);
        assert_eq!(wires.carry(0, 0, 1, 100), 110);
        assert_eq!(wires.carry(0, 0, 2, 100), 210, "the sender is busy");
        assert_eq!(wires.carry(150, 1, 2, 100), 310, "the receiver is busy");
        assert_eq!(wires.carry(0, 1, 1, 100), 0, "within a host");
        assert_eq!(wires.carry(0, 0, 1, 0), 10, "no payload");
        assert_eq!((wires.carried_ns, wires.waited_ns), (600, 150));
    }
}
