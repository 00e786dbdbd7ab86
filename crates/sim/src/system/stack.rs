//! [`Stack`]: the events of a layer and of the systems below it.

use headstack_workload::{Kind, Request};

use super::{Stack, System};
use crate::description::system::StackDescription;
use crate::drive::Completion;
use crate::error::SimError;
use crate::pending_requests::Failed;
use crate::stack::{Answer, Layer, LayerModel, Order, Orders};

impl Stack {
    /// Creates an idle stack. Each system below gets a seed of its own.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &StackDescription, seed: u64) -> Result<Stack, SimError> {
        description.check_layer()?;
        let seeds = (0..).map(|port: u64| seed.wrapping_add(port.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let adapted = description.adapted_ports();
        let below: Result<Vec<System>, SimError> =
            adapted.iter().zip(seeds).map(|(system, seed)| System::new(system, seed)).collect();
        let below = below?;
        Ok(Stack {
            part_names: (0..below.len()).map(|port| description.part_name(port)).collect(),
            layer: Layer::new(description),
            port_names: (0..below.len()).map(|port| description.device_name(port, "")).collect(),
            next_ns: below.iter().map(System::next_event_ns).collect(),
            below,
            orders: Orders::new(),
            returned: Vec::new(),
            returned_failed: Vec::new(),
            immediate: Vec::new(),
            failed: Vec::new(),
            capacity_bytes: description.capacity_bytes(),
            keeps_addresses: description.layer.keeps_addresses(),
            outstanding: 0,
        })
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next_event_ns(&self) -> u64 {
        let immediate_ns = self.immediate.first().map_or(u64::MAX, |completion| completion.at_ns);
        self.next_ns.iter().fold(self.layer.next_event_ns().min(immediate_ns), |first, &next| first.min(next))
    }

    /// Takes a request; see [`System::submit`].
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) {
        debug_assert!(self.next_event_ns() >= now_ns, "earlier events are processed before a request");
        self.outstanding += 1;
        self.layer.submit(now_ns, id, request, &mut self.orders);
        self.carry_out_later(now_ns);
    }

    /// Processes every event up to `now_ns`; see [`System::advance`].
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        loop {
            done.append(&mut self.immediate);
            let at_ns = self.next_event_ns();
            if at_ns > now_ns {
                break;
            }
            self.step(at_ns, done);
        }
        debug_assert!(
            self.outstanding == 0 || self.next_event_ns() < u64::MAX,
            "no event is scheduled, but {} requests wait",
            self.outstanding
        );
    }

    /// Processes events up to the first that completes a request; see [`System::advance_to_completions`].
    pub fn advance_to_completions(&mut self, limit_ns: u64, done: &mut Vec<Completion>) -> u64 {
        let mut now_ns = self.next_event_ns();
        loop {
            self.advance(now_ns, done);
            let next_ns = self.next_event_ns();
            if !done.is_empty() || next_ns > limit_ns || next_ns == u64::MAX {
                return now_ns;
            }
            now_ns = next_ns;
        }
    }

    /// Processes the events of one moment: answers from below first, then those of the layer.
    fn step(&mut self, at_ns: u64, done: &mut Vec<Completion>) {
        for port in 0..self.below.len() {
            if self.next_ns[port] == at_ns {
                self.step_below(at_ns, port, done);
            }
        }
        if self.layer.next_event_ns() <= at_ns {
            self.layer.wake(at_ns, &mut self.orders);
            self.carry_out(at_ns, done);
        }
    }

    fn step_below(&mut self, at_ns: u64, port: usize, done: &mut Vec<Completion>) {
        let mut returned = std::mem::take(&mut self.returned);
        self.below[port].advance(at_ns, &mut returned);
        self.below[port].take_failed(&mut self.returned_failed);
        self.next_ns[port] = self.below[port].next_event_ns();
        for completion in returned.drain(..) {
            let failed = self.returned_failed.iter().position(|failed| failed.id == completion.id);
            let failed = failed.map(|at| self.returned_failed.swap_remove(at));
            let failed = failed.map(|failed| (failed.at_bytes, failed.write));
            let answer = Answer { id: completion.id, started_ns: completion.started_ns, failed };
            self.layer.answered(at_ns, port as u32, &answer, &mut self.orders);
        }
        self.returned = returned;
        self.note_fillings(at_ns, port);
        debug_assert!(self.returned_failed.is_empty(), "only a completed request has failed");
        self.carry_out(at_ns, done);
    }

    /// Passes the members of a system below that wait to be filled to the layer, if they have changed.
    pub(super) fn note_fillings(&mut self, now_ns: u64, port: usize) {
        if let Some(fillings) = self.below[port].take_fillings() {
            self.layer.fillings_changed(now_ns, port as u32, &fillings, &mut self.orders);
        }
    }

    /// Delivers what the layer ordered outside of an event; the next event takes the completions.
    pub(super) fn carry_out_later(&mut self, now_ns: u64) {
        let mut immediate = std::mem::take(&mut self.immediate);
        self.carry_out(now_ns, &mut immediate);
        self.immediate = immediate;
    }

    /// Delivers what the layer ordered.
    fn carry_out(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        while let Some(order) = self.orders.pop_front() {
            match order {
                Order::Send { port, id, mut request } => {
                    let port = port as usize;
                    if request.kind == Kind::Flush && !matches!(self.below[port], System::Stack(_)) {
                        // Only file systems know files; a device flushes everything.
                        request.offset_bytes = 0;
                    }
                    self.below[port].submit(now_ns, id, &request);
                    self.next_ns[port] = self.below[port].next_event_ns();
                }
                Order::Repair { port, id, repair } => {
                    let port = port as usize;
                    self.below[port].repair(now_ns, id, &repair);
                    self.next_ns[port] = self.below[port].next_event_ns();
                }
                Order::WriteStripes { port, id, stripes } => {
                    let port = port as usize;
                    self.below[port].write_stripes(now_ns, id, &stripes);
                    self.next_ns[port] = self.below[port].next_event_ns();
                }
                Order::EndFilling { port, group } => {
                    let port = port as usize;
                    self.below[port].end_filling(now_ns, group);
                    self.next_ns[port] = self.below[port].next_event_ns();
                    self.note_fillings(now_ns, port);
                }
                Order::Answer(answer) => {
                    self.outstanding -= 1;
                    if let Some((at_bytes, write)) = answer.failed {
                        self.failed.push(Failed { id: answer.id, at_bytes, write });
                    }
                    done.push(Completion { at_ns: now_ns, id: answer.id, started_ns: answer.started_ns });
                }
            }
        }
    }

    /// Appends the requests that completed in error since the last call; see [`System::take_failed`].
    pub fn take_failed(&mut self, into: &mut Vec<Failed>) {
        into.append(&mut self.failed);
    }
}
