//! Sparse reads: a structured reply lists runs of zeros as holes and omits their data.

use std::ops::Range;

use headstack_nbd::{self as wire, To, chunk};

/// Holes consist of whole pages of the export.
const PAGE_BYTES: u64 = 4096;
/// Bytes of the offset before a chunk's data.
const OFFSET_BYTES: usize = 8;

/// Splits the chunk of data at the end of `message`, whose bytes begin at `from`, into chunks of data and of holes. The
/// message never becomes longer: each hole has room for its own chunk and the next header.
pub fn leave_out_zeros(message: &mut Vec<u8>, from: usize, to: To) {
    let offset_bytes = to.offset_bytes;
    let runs = runs(&message[from..], offset_bytes);
    if runs.iter().all(|(_, is_zero)| !is_zero) {
        return;
    }
    let mut at = from - to.framing.chunk_bytes() - OFFSET_BYTES;
    let mut head = Vec::with_capacity(64);
    for (number, (run, is_zero)) in runs.iter().enumerate() {
        let flags = if number + 1 == runs.len() { chunk::FLAG_DONE } else { 0 };
        let run_offset_bytes = offset_bytes + run.start as u64;
        head.clear();
        if *is_zero {
            wire::chunk_header(&mut head, to, flags, chunk::OFFSET_HOLE, 12);
            head.extend_from_slice(&run_offset_bytes.to_be_bytes());
            head.extend_from_slice(&(run.len() as u32).to_be_bytes());
        } else {
            wire::chunk_header(&mut head, to, flags, chunk::OFFSET_DATA, 8 + run.len() as u32);
            head.extend_from_slice(&run_offset_bytes.to_be_bytes());
        }
        message[at..at + head.len()].copy_from_slice(&head);
        at += head.len();
        if !is_zero {
            let data = from + run.start..from + run.end;
            assert!(at <= data.start, "a chunk is no longer than the zeros before it");
            message.copy_within(data, at);
            at += run.len();
        }
    }
    message.truncate(at);
    message.shrink_to_fit();
}

/// Turns a sparse reply back into one chunk of data, since a new fault may affect reads that were already under way.
pub fn put_in_zeros(message: &mut Vec<u8>, to: To, length_bytes: u32) {
    let head_bytes = to.framing.chunk_bytes();
    let data_at = head_bytes + OFFSET_BYTES;
    if message.len() == data_at + length_bytes as usize {
        return;
    }
    let mut whole = Vec::with_capacity(data_at + length_bytes as usize);
    wire::chunk_header(&mut whole, to, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + length_bytes);
    whole.extend_from_slice(&to.offset_bytes.to_be_bytes());
    whole.resize(data_at + length_bytes as usize, 0);
    let mut rest = &message[..];
    while rest.len() >= data_at {
        let kind = u16::from_be_bytes([rest[6], rest[7]]);
        // The length is the last field of the header; no reply to a read is so long that it needs more than 32 bits.
        let length = u32::from_be_bytes(rest[head_bytes - 4..head_bytes].try_into().expect("four bytes")) as usize;
        let at = u64::from_be_bytes(rest[head_bytes..data_at].try_into().expect("eight bytes")) - to.offset_bytes;
        let (this, others) = rest.split_at(head_bytes + length);
        if kind == chunk::OFFSET_DATA {
            let data = &this[data_at..];
            whole[data_at + at as usize..][..data.len()].copy_from_slice(data);
        }
        rest = others;
    }
    *message = whole;
}

/// Splits data into runs of whole zero pages, and the data between them.
fn runs(data: &[u8], offset_bytes: u64) -> Vec<(Range<usize>, bool)> {
    let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let left = PAGE_BYTES - (offset_bytes + at as u64) % PAGE_BYTES;
        let end = data.len().min(at + left as usize);
        let is_page = end - at == PAGE_BYTES as usize;
        let is_zero = is_page && data[at..end].iter().all(|&byte| byte == 0);
        match runs.last_mut() {
            Some((run, of_zeros)) if *of_zeros == is_zero => run.end = end,
            _ => runs.push((at..end, is_zero)),
        }
        at = end;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_nbd::Framing;

    /// The reply to a read of `data`, and the client's interpretation.
    fn sparse_reply(data: &[u8], offset_bytes: u64) -> (usize, Vec<u8>, Vec<u16>) {
        let mut message = b"before".to_vec();
        let to = To { framing: Framing::Structured, cookie: 7, offset_bytes };
        wire::chunk_header(&mut message, to, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + data.len() as u32);
        message.extend_from_slice(&offset_bytes.to_be_bytes());
        let from = message.len();
        message.extend_from_slice(data);
        leave_out_zeros(&mut message, from, to);
        assert_eq!(&message[..6], b"before");
        let (mut rest, mut read, mut kinds) = (&message[6..], vec![1; data.len()], Vec::new());
        while !rest.is_empty() {
            let half = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
            let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four")) as usize;
            let at = (u64::from_be_bytes(rest[20..28].try_into().expect("eight")) - offset_bytes) as usize;
            let end = 20 + word(16);
            assert_eq!(half(4) & chunk::FLAG_DONE != 0, rest.len() == end, "the last one is marked as the last");
            match half(6) {
                chunk::OFFSET_HOLE => read[at..at + word(28)].fill(0),
                kind => {
                    assert_eq!(kind, chunk::OFFSET_DATA);
                    read[at..at + end - 28].copy_from_slice(&rest[28..end]);
                }
            }
            kinds.push(half(6));
            rest = &rest[end..];
        }
        (message.len(), read, kinds)
    }

    #[test]
    fn zeros_are_sent_as_holes_at_any_offset() {
        let (hole, data) = (chunk::OFFSET_HOLE, chunk::OFFSET_DATA);
        // Pages by letter; a dot is zeros.
        for (pages, offset_bytes, wanted) in [
            ("ab", 0, vec![data]),
            ("..", 0, vec![hole]),
            (".a.", 4096, vec![hole, data, hole]),
            ("a..b.c", 0, vec![data, hole, data, hole, data]),
            // Unaligned, a partial page of zeros is data.
            ("..", 512, vec![data, hole, data]),
            (".", 512, vec![data]),
        ] {
            let page = |letter: u8| [if letter == b'.' { 0 } else { letter }; 4096];
            let bytes: Vec<u8> = pages.bytes().flat_map(page).collect();
            let (length, read, kinds) = sparse_reply(&bytes, offset_bytes);
            assert!(read == bytes, "{pages}");
            assert_eq!(kinds, wanted, "{pages}");
            let kept = if kinds.contains(&hole) { bytes.len() } else { bytes.len() + 1 };
            assert!(length < 34 + kept, "{pages} takes {length} B");
            let mut message = Vec::new();
            for framing in [Framing::Structured, Framing::Extended] {
                let to = To { framing, cookie: 7, offset_bytes };
                message.clear();
                wire::chunk_header(&mut message, to, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + bytes.len() as u32);
                message.extend_from_slice(&offset_bytes.to_be_bytes());
                message.extend_from_slice(&bytes);
                let whole = message.clone();
                leave_out_zeros(&mut message, framing.chunk_bytes() + OFFSET_BYTES, to);
                put_in_zeros(&mut message, to, bytes.len() as u32);
                assert!(message == whole, "{pages}: as it was");
            }
        }
    }
}
