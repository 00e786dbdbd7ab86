//! What a stack answers besides requests: its devices, counters, contents at risk, and power.

use headstack_result::Levels;
use headstack_workload::{Request, Span};

use super::{Stack, System};
use crate::array::GroupStatus;
use crate::description::array::IncidentKind;
use crate::device::Device;
use crate::error::SimError;
use crate::gauges::{DeviceHealth, Gauges, GroupHealth};
use crate::snapshot::Snapshot;
use crate::spans::put_in_order;
use crate::stack::LayerModel;

impl Stack {
    /// Returns the bytes that it exports.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Returns the number of its devices: those of each system below, in order.
    pub fn devices(&self) -> usize {
        self.below.iter().map(System::devices).sum()
    }

    /// Returns the system below that contains a device, and the device's number there.
    fn owner(&self, device: u32) -> Option<(usize, u32)> {
        let mut number = device;
        for (port, system) in self.below.iter().enumerate() {
            let devices = system.devices() as u32;
            if number < devices {
                return Some((port, number));
            }
            number -= devices;
        }
        None
    }

    /// Returns a device by its number, which must exist.
    pub(crate) fn device_mut(&mut self, device: u32) -> Result<&mut Device, SimError> {
        let devices = self.devices();
        let Some((port, number)) = self.owner(device) else {
            return Err(SimError::Fault(format!("member {device}; 0 to {} are allowed", devices - 1)));
        };
        self.below[port].device_mut(Some(number))
    }

    /// Reads a property of a device from the system below that contains it; `None` if there is no such device.
    pub(crate) fn with_owner<T>(&self, device: u32, read: impl FnOnce(&System, u32) -> T) -> Option<T> {
        self.owner(device).map(|(port, number)| read(&self.below[port], number))
    }

    /// Returns the systems below, in order.
    pub fn systems(&self) -> &[System] {
        &self.below
    }

    /// The system that holds the data.
    pub fn base(&self) -> &System {
        &self.below[0]
    }

    /// Adds a past request to the caches of the layer and, if it would have got there, of the system below.
    pub fn warm_with(&mut self, request: &Request) {
        if self.layer.warm_with(request) {
            let below = &mut self.below;
            self.layer.pieces(request.span(), &mut |port, offset_bytes, part| {
                let length_bytes = part.length_bytes as u32;
                below[port as usize].warm_with(&Request { offset_bytes, length_bytes, ..*request });
            });
        }
    }

    /// Returns the fill levels of the layer and of the systems below, summed.
    pub fn levels(&self) -> Levels {
        let mut levels = Levels::default();
        for system in &self.below {
            for (level, below) in levels.iter_mut().zip(system.levels()) {
                *level += below;
            }
        }
        self.layer.add_levels(&mut levels);
        levels
    }

    /// Cleans the cache of the system that holds the data; see [`System::leave_dirty`].
    pub fn leave_dirty(&mut self, share: f64) {
        self.below[0].leave_dirty(share);
    }

    /// Adds the counters of the layer and of the systems below; those after the first are named by their number.
    pub fn snapshot(&self, into: &mut Snapshot) {
        self.layer.snapshot(into);
        for (port, system) in self.below.iter().enumerate() {
            match &self.part_names[port] {
                Some(name) => into.absorb_equal(name, system.snapshot()),
                None => into.absorb(&self.port_names[port], system.snapshot()),
            }
        }
    }

    /// Applies an incident to the system that holds the data, up to whose events `now_ns` has been processed, or a scrub
    /// to the layer if it scrubs.
    ///
    /// # Errors
    /// An incident that cannot happen to that system.
    pub fn strike(&mut self, now_ns: u64, incident: IncidentKind) -> Result<(), SimError> {
        let is_scrub = matches!(incident, IncidentKind::Scrub { .. });
        if is_scrub && let Some(started) = self.layer.scrub(now_ns, &mut self.orders) {
            self.carry_out_later(now_ns);
            return started.map_err(SimError::Fault);
        }
        self.below[0].strike(now_ns, incident)?;
        self.note_fillings(now_ns, 0);
        self.carry_out_later(now_ns);
        self.next_ns[0] = self.below[0].next_event_ns();
        Ok(())
    }

    /// Appends the parts of `spans` that a power cut would lose; see [`System::volatile`].
    pub fn volatile(&self, now_ns: u64, spans: &[Span], into: &mut Vec<Span>) {
        let first = into.len();
        self.layer.volatile(spans, into);
        let mut held = Vec::new();
        let mut look = |port: u32, place_bytes: u64, part: Span| {
            let place = Span { start_bytes: place_bytes, length_bytes: part.length_bytes };
            self.below[port as usize].volatile(now_ns, &[place], &mut held);
            into.extend(held.drain(..).map(|held| Span {
                start_bytes: part.start_bytes + (held.start_bytes - place_bytes),
                length_bytes: held.length_bytes,
            }));
        };
        spans.iter().for_each(|span| self.layer.pieces(*span, &mut look));
        put_in_order(into, first);
    }

    /// Whether a power cut can lose acknowledged data.
    pub fn may_lose_data(&self) -> bool {
        self.layer.holds_data() || self.below.iter().any(System::may_lose_data)
    }

    /// Returns the aligned bytes that a write changes as a whole; see [`System::atomic_bytes`].
    pub fn atomic_bytes(&self) -> Option<u64> {
        self.layer.atomic_bytes().or_else(|| self.below[0].atomic_bytes())
    }

    /// Returns the end of the physical unit within which a torn write can stop.
    pub fn tear_bound(&self, at_bytes: u64) -> u64 {
        if let Some(unit_bytes) = self.atomic_bytes() {
            return (at_bytes + 1).next_multiple_of(unit_bytes);
        }
        let mut bound = at_bytes + 1;
        self.layer.pieces(Span { start_bytes: at_bytes, length_bytes: 1 }, &mut |port, place_bytes, _| {
            bound = at_bytes + (self.below[port as usize].tear_bound(place_bytes) - place_bytes);
        });
        bound
    }

    /// Whether a request reads, or has to write, data of a slot of a group that does not hold them now.
    pub fn misses(&self, place: (u32, u32), request: &Request) -> bool {
        let mut misses = false;
        self.layer.pieces(request.span(), &mut |port, offset_bytes, part| {
            let length_bytes = part.length_bytes as u32;
            misses |= port == 0 && self.below[0].misses(place, &Request { offset_bytes, length_bytes, ..*request });
        });
        misses
    }

    /// Returns the health of the groups of the system that holds the data.
    pub fn group_states(&self) -> Vec<GroupHealth> {
        self.below[0].group_states()
    }

    /// Whether members of the system that holds the data can differ; see [`System::leaves_halves`].
    pub fn leaves_halves(&self) -> bool {
        self.keeps_addresses && self.below[0].leaves_halves()
    }

    /// Returns the standing of those groups; see [`System::standings`]. `None` if their addresses are not those of the
    /// stack.
    pub fn standings(&self, seen: &mut u64) -> Option<Vec<GroupStatus>> {
        if self.keeps_addresses { self.below[0].standings(seen) } else { None }
    }

    /// Handles a power loss at `now_ns`.
    pub fn power_fails(&mut self, now_ns: u64) {
        self.below.iter_mut().for_each(|system| system.power_fails(now_ns));
    }

    /// Handles a power cycle whose power is back at `now_ns`; see [`System::power_cycle`].
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.layer.power_cycle(now_ns);
        self.below.iter_mut().for_each(|system| system.power_cycle(now_ns));
        self.next_ns = self.below.iter().map(System::next_event_ns).collect();
        self.orders.clear();
        self.immediate.clear();
        self.failed.clear();
        self.outstanding = 0;
        (0..self.below.len()).for_each(|port| self.note_fillings(now_ns, port));
        self.carry_out_later(now_ns);
    }

    /// Returns the activity of its devices, for display.
    pub fn gauges(&self, now_ns: u64) -> Gauges {
        let mut gauges = Gauges { devices: Vec::new(), ..self.below[0].gauges(now_ns) };
        for (port, system) in self.below.iter().enumerate() {
            gauges.devices.extend(system.gauges(now_ns).devices.into_iter().map(|mut device| {
                device.name = [self.port_names[port].as_str(), &device.name].join(" ").trim().to_owned();
                device
            }));
        }
        gauges.outstanding = self.outstanding;
        gauges
    }

    /// Appends the source values of each device's SMART counters.
    pub fn device_health(&self, into: &mut Vec<DeviceHealth>) {
        for (port, system) in self.below.iter().enumerate() {
            let first = into.len();
            system.device_health(into);
            for device in &mut into[first..] {
                device.name = [self.port_names[port].as_str(), &device.name].join(" ").trim().to_owned();
            }
        }
    }

    /// Returns the data loss that ended it.
    pub fn data_loss(&self) -> Option<&str> {
        self.below.iter().find_map(System::data_loss)
    }
}
