//! Writes block traces as the kernel and blkparse do, from a list of events.

/// An event, in blkparse's terms.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub at_us: u64,
    pub cpu: u32,
    /// Sequence number among the events of the CPU, from 1.
    pub sequence: u32,
    pub device: (u32, u32),
    pub pid: u32,
    /// Action: Q, M, F, G, I, R, D, C, U, X or A.
    pub action: &'static str,
    /// Letters as printed by blkparse; a leading P marks a pass-through command.
    pub rwbs: &'static str,
    pub sector: u64,
    pub bytes: u32,
    /// Start of the second part of a split, original sector of a remapped request, or number of requests unplugged.
    pub extra: u64,
    pub error: i16,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    V7,
    V7BigEndian,
    V8,
    Hybrid,
}

const ACTIONS: [(&str, u64, u64); 12] = [
    ("Q", 1, 1 << 4),
    ("M", 2, 1 << 4),
    ("F", 3, 1 << 4),
    ("G", 4, 1 << 4),
    ("R", 6, 1 << 5),
    ("D", 7, 1 << 6),
    ("C", 8, 1 << 7),
    ("P", 9, 1 << 4),
    ("U", 10, 1 << 4),
    ("I", 12, 1 << 4),
    ("X", 13, 0),
    ("A", 15, 1 << 4),
];
const NOTE: u64 = 1 << 10;
const CGROUP: u64 = 0x100;
/// CLOCK_MONOTONIC at the first event, and the time of day at that moment.
pub const START_NS: u64 = 5_000_000_000_000;
pub const START_UNIX: (u32, u32) = (1_700_000_000, 250_000_000);

fn categories(rwbs: &str) -> u64 {
    let (pass_through, rwbs) = rwbs.strip_prefix('P').map_or((0, rwbs), |rest| (1 << 9, rest));
    let (flush, rwbs) = rwbs.strip_prefix('F').map_or((0, rwbs), |rest| (1 << 2, rest));
    let kind = match &rwbs[..1] {
        "W" => 1 << 1,
        "D" => 1 << 1 | 1 << 13,
        _ => 1,
    };
    let bit = |letter| match letter {
        'F' => 1 << 15,
        'A' => 1 << 11,
        'S' => 1 << 3,
        'M' => 1 << 12,
        other => panic!("{other}"),
    };
    rwbs[1..].chars().fold(pass_through | flush | kind, |bits, letter| bits | bit(letter))
}

/// Encodes one record.
#[expect(clippy::too_many_arguments)]
fn record(
    layout: Layout,
    at_ns: u64,
    event: &Event,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    pdu: &[u8],
) -> Vec<u8> {
    let big = layout == Layout::V7BigEndian;
    let mut out = Vec::new();
    let u16s = |out: &mut Vec<u8>, x: u16| out.extend(if big { x.to_be_bytes() } else { x.to_le_bytes() });
    let u32s = |out: &mut Vec<u8>, x: u32| out.extend(if big { x.to_be_bytes() } else { x.to_le_bytes() });
    let u64s = |out: &mut Vec<u8>, x: u64| out.extend(if big { x.to_be_bytes() } else { x.to_le_bytes() });
    let device = event.device.0 << 20 | event.device.1;
    u32s(&mut out, if layout == Layout::V8 { 0x6561_7408 } else { 0x6561_7407 });
    u32s(&mut out, event.sequence);
    u64s(&mut out, at_ns);
    u64s(&mut out, sector);
    u32s(&mut out, bytes);
    if matches!(layout, Layout::V7 | Layout::V7BigEndian) {
        u32s(&mut out, action as u32);
        u32s(&mut out, pid);
    } else {
        u32s(&mut out, pid);
        u64s(&mut out, action);
    }
    u32s(&mut out, device);
    u32s(&mut out, event.cpu);
    if layout != Layout::Hybrid {
        u16s(&mut out, event.error as u16);
        u16s(&mut out, pdu.len() as u16);
    }
    if layout == Layout::V8 {
        out.extend([0; 12]);
    }
    out.extend(pdu);
    out
}

impl Event {
    pub fn at_ns(&self) -> u64 {
        START_NS + self.at_us * 1_000
    }

    /// Returns the event as the kernel records it, with a cgroup id if given.
    pub fn binary(&self, layout: Layout, cgroup: Option<u64>) -> Vec<u8> {
        let (_, number, stage) = ACTIONS.into_iter().find(|(letter, ..)| *letter == self.action).unwrap();
        let mut pdu = Vec::new();
        if let Some(id) = cgroup {
            pdu.extend(if layout == Layout::V7BigEndian { id.to_be_bytes() } else { id.to_le_bytes() });
        }
        match self.action {
            "U" | "X" => pdu.extend(self.extra.to_be_bytes()),
            "A" => {
                let device = self.device.0 << 20 | self.device.1;
                pdu.extend([device.to_be_bytes(), device.to_be_bytes()].concat());
                pdu.extend(self.extra.to_be_bytes());
            }
            _ => {}
        }
        let fs = if self.rwbs.starts_with('P') { 0 } else { 1 << 8 };
        let cgroup = if cgroup.is_some() { CGROUP } else { 0 };
        let action = (categories(self.rwbs) | stage | fs) << 16 | number | cgroup;
        record(layout, self.at_ns(), self, self.sector, self.bytes, action, self.pid, &pdu)
    }

    /// Returns the line that blkparse prints.
    pub fn text(&self, sequence: usize, zero_us: u64, name: &str) -> String {
        let us = self.at_us - zero_us;
        let sectors = self.bytes / 512;
        let is_command = self.rwbs.starts_with('P');
        let place = match self.action {
            "C" if is_command => String::new(),
            "D" if is_command => format!("{} ", self.bytes),
            "X" => format!("{} / {} ", self.sector, self.extra),
            "A" => format!("{} + {sectors} <- ({},{}) {}", self.sector, self.device.0, self.device.1, self.extra),
            "P" | "U" => String::new(),
            "C" if sectors == 0 => format!("{} ", self.sector),
            _ if sectors == 0 => String::new(),
            _ => format!("{} + {sectors} ", self.sector),
        };
        let end = match self.action {
            "C" => format!("[{}]", self.error),
            "U" => format!("[{name}] {}", self.extra),
            "A" => String::new(),
            _ => format!("[{name}]"),
        };
        let rwbs = self.rwbs.trim_start_matches('P');
        let rwbs = if self.bytes == 0 && !is_command { rwbs.replace('R', "N") } else { rwbs.to_owned() };
        format!(
            "{:>3},{:<3} {:>2} {sequence:>8} {:>5}.{:09} {:>5} {:>2} {rwbs:>3} {place}{end}\n",
            self.device.0,
            self.device.1,
            self.cpu,
            us / 1_000_000,
            us % 1_000_000 * 1_000,
            self.pid,
            self.action,
        )
    }
}

/// Returns the notification of a process name.
pub fn name_note(layout: Layout, event: &Event, pid: u32, name: &str) -> Vec<u8> {
    let mut pdu = [0; 16];
    pdu[..name.len()].copy_from_slice(name.as_bytes());
    record(layout, event.at_ns(), event, 0, 0, NOTE << 16, pid, &pdu)
}

/// Returns the notification of the time of day.
pub fn clock_note(layout: Layout, event: &Event) -> Vec<u8> {
    let word = |x: u32| if layout == Layout::V7BigEndian { x.to_be_bytes() } else { x.to_le_bytes() };
    let pdu = [word(START_UNIX.0), word(START_UNIX.1)].concat();
    record(layout, START_NS, event, 0, 0, NOTE << 16 | 1, 0, &pdu)
}

/// Returns a message notification. Its event number is that of a merge, but its category differs.
pub fn message_note(layout: Layout, event: &Event, text: &str) -> Vec<u8> {
    record(layout, event.at_ns(), event, 0, 0, NOTE << 16 | 2, 0, text.as_bytes())
}
