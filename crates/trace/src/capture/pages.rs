//! Parses binary pages of the kernel's ring buffer and the fields of events; both layouts differ between kernels, which
//! describe their own.

use super::control::failed;
use crate::error::TraceError;

/// A field of an event or of a page's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    bytes: usize,
}

impl Field {
    /// Its bytes; empty if the event is shorter.
    pub(super) fn of(self, event: &[u8]) -> &[u8] {
        event.get(self.offset..self.offset.saturating_add(self.bytes)).unwrap_or_default()
    }

    /// Its value in the machine's byte order, sign-extended if negative; 0 if the event is shorter.
    #[inline]
    pub(super) fn number(self, event: &[u8]) -> u64 {
        match *self.of(event) {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// Its text, up to the first zero.
    pub(super) fn text(self, event: &[u8]) -> &[u8] {
        let text = self.of(event);
        &text[..text.iter().position(|&byte| byte == 0).unwrap_or(text.len())]
    }
}

/// Fields described by a `format` or `header_page` file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Number of the event in records; 0 for a page's header, which has none.
    pub(super) id: u64,
    fields: Vec<(String, Field)>,
}

impl Layout {
    /// Parses lines such as `field:char comm[16]; offset:44; size:16; signed:0;`.
    pub(super) fn parse(text: &str) -> Layout {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok()).unwrap_or(0);
        let fields = text.lines().filter_map(|line| {
            let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
            let declared = parts.next()?.rsplit(' ').next()?;
            let name = declared.split('[').next()?.to_owned();
            let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
            let bytes = parts.next()?.strip_prefix("size:")?.parse().ok()?;
            Some((name, Field { offset, bytes }))
        });
        Layout { id, fields: fields.collect() }
    }

    /// The field with that name.
    pub(super) fn find(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(field, _)| field == name).map(|&(_, field)| field)
    }
}

/// Layout of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: Field,
}

/// Bits of the commit word with the length of the data; the bits above mark lost events.
const COMMIT_LENGTH: u64 = 0xf_ffff;
/// Bits of an event's time delta, which with the type's 5 fill its first word.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute timestamp; the others come from the page's own.
const STAMP_BITS: u32 = 59;
/// Types of events other than a length.
const LONG: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

impl PageLayout {
    /// Parses `events/header_page`.
    ///
    /// # Errors
    /// When the header has no timestamp, length or data.
    pub(super) fn parse(text: &str) -> Result<PageLayout, TraceError> {
        let layout = Layout::parse(text);
        let field_offsets = || {
            Some(PageLayout {
                timestamp: layout.find("timestamp")?,
                commit: layout.find("commit")?,
                data: layout.find("data")?,
            })
        };
        field_offsets().ok_or_else(|| failed("events/header_page does not describe timestamp, commit and data"))
    }

    /// Length of a page in bytes.
    pub(super) fn page_bytes(self) -> usize {
        self.data.offset.saturating_add(self.data.bytes)
    }

    /// Calls `each` with the time and the bytes of every event of a page; a damaged page ends early.
    pub(super) fn events(self, page: &[u8], mut each: impl FnMut(u64, &[u8])) {
        let length = (self.commit.number(page) & COMMIT_LENGTH) as usize;
        let mut time_ns = self.timestamp.number(page);
        let mut rest = page.get(self.data.offset..).unwrap_or_default();
        rest = &rest[..length.min(rest.len())];
        while let Some((word, after)) = split_word(rest) {
            let (kind, delta) = split_kind(word);
            // Short events have their length, in words, in place of a type; all others have a second word.
            let second = if matches!(kind, 1..=28) { Some((0, after)) } else { split_word(after) };
            let Some((second, after)) = second else { return };
            let stamp = u64::from(second) << DELTA_BITS | u64::from(delta);
            let bytes = match kind {
                PADDING if delta == 0 => return,
                // The length includes its own four bytes.
                LONG | PADDING => (second as usize).saturating_sub(4).next_multiple_of(4),
                TIME_EXTEND | TIME_STAMP => 0,
                words => words as usize * 4,
            };
            time_ns = match kind {
                TIME_EXTEND => time_ns.wrapping_add(stamp),
                TIME_STAMP => time_ns >> STAMP_BITS << STAMP_BITS | stamp,
                _ => time_ns.wrapping_add(u64::from(delta)),
            };
            let Some((event, next)) = after.split_at_checked(bytes) else { return };
            if kind < PADDING {
                each(time_ns, event);
            }
            rest = next;
        }
    }
}

fn split_word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_ne_bytes(*word), rest))
}

/// A bit field of C: the first bits are the lowest on a little-endian machine, the highest on a big-endian one.
fn split_kind(word: u32) -> (u32, u32) {
    if cfg!(target_endian = "little") {
        (word & 0x1f, word >> 5)
    } else {
        (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    /// A page that began at 1,000 ns.
    fn page(words: &[u32], missed: u64) -> Vec<u8> {
        let mut page = 1_000u64.to_le_bytes().to_vec();
        page.extend((missed | (words.len() as u64 * 4)).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page.resize(4096, 0xee);
        page
    }

    fn read(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut field_offsets = Vec::new();
        let layout = PageLayout::parse(HEADER).unwrap();
        assert_eq!(layout.page_bytes(), 4096);
        layout.events(page, |time_ns, event| field_offsets.push((time_ns, event.to_vec())));
        field_offsets
    }

    #[test]
    fn events_of_every_kind_in_a_page() {
        let delta = |ns: u32, kind: u32| ns << 5 | kind;
        let words = [
            delta(5, 1),
            0x11,
            // 2^27 ns, and 3.
            delta(3, TIME_EXTEND),
            1,
            delta(0, LONG),
            12,
            0x22,
            0x33,
            // An event discarded by its filter.
            delta(10, PADDING),
            8,
            0x44,
            delta(7, TIME_STAMP),
            2,
            delta(1, 2),
            0x55,
            0x66,
            delta(0, PADDING),
            0x77,
        ];
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let expected = [
            (1_005, bytes(&[0x11])),
            (1_008 + (1 << 27), bytes(&[0x22, 0x33])),
            (2 * (1 << 27) + 8, bytes(&[0x55, 0x66])),
        ];
        assert_eq!(read(&page(&words, 0)), expected);
        assert_eq!(read(&page(&words, 3 << 30)), expected, "marks of lost events are no length");
        assert_eq!(read(&page(&words[..7], 0)), expected[..1], "an event that is cut off");
    }

    #[test]
    fn fields_are_found_by_name() {
        let layout = Layout::parse(
            "name: block_rq_issue\nID: 2104\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
             \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
             \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
             \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\nprint fmt: \"%d\", REC->x\n",
        );
        assert_eq!(layout.id, 2104);
        assert_eq!(layout.find("comm"), Some(Field { offset: 44, bytes: 16 }));
        assert_eq!(layout.find("cmd"), Some(Field { offset: 60, bytes: 4 }));
        assert_eq!(layout.find("bytes"), None);
        let mut event = vec![0; 64];
        event[44..48].copy_from_slice(b"fio\0");
        event[16] = 7;
        assert_eq!(layout.find("comm").unwrap().text(&event), b"fio");
        assert_eq!(layout.find("sector").unwrap().number(&event), 7);
        assert_eq!(layout.find("sector").unwrap().number(&event[..20]), 0);
    }

    proptest! {
        #[test]
        fn any_page_is_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let layout = PageLayout::parse(HEADER).unwrap();
            layout.events(&bytes, |_, event| assert!(event.len() <= bytes.len()));
        }
    }
}
