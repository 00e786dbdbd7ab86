//! Reads without their zeros: a structured reply says where these are, and leaves them out.

use std::ops::Range;

use super::wire::{self, chunk};

/// Runs of zeros are made of pages of the export, whole ones.
const PAGE_BYTES: u64 = 4096;
/// A chunk of data before the data, and a chunk of a hole.
const DATA_HEAD_BYTES: usize = 28;

/// Turns the one chunk of data at the end of `message`, whose bytes begin at `from` and are at `offset_bytes` of the export,
/// into chunks of data and of holes. It only ever becomes shorter: each hole has room for its own chunk and the next head.
pub fn leave_out_zeros(message: &mut Vec<u8>, from: usize, cookie: u64, offset_bytes: u64) {
    let runs = runs(&message[from..], offset_bytes);
    if runs.iter().all(|(_, is_zero)| !is_zero) {
        return;
    }
    let mut at = from - DATA_HEAD_BYTES;
    let mut head = Vec::with_capacity(32);
    for (number, (run, is_zero)) in runs.iter().enumerate() {
        let flags = if number + 1 == runs.len() { chunk::FLAG_DONE } else { 0 };
        let run_offset_bytes = offset_bytes + run.start as u64;
        head.clear();
        if *is_zero {
            wire::chunk_header(&mut head, cookie, flags, chunk::OFFSET_HOLE, 12);
            head.extend_from_slice(&run_offset_bytes.to_be_bytes());
            head.extend_from_slice(&(run.len() as u32).to_be_bytes());
        } else {
            wire::chunk_header(&mut head, cookie, flags, chunk::OFFSET_DATA, 8 + run.len() as u32);
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

/// Turns a reply without its zeros back into one chunk of data: a fault that comes is for reads that were there before it, too.
pub fn put_in_zeros(message: &mut Vec<u8>, cookie: u64, offset_bytes: u64, length_bytes: u32) {
    if message.len() == DATA_HEAD_BYTES + length_bytes as usize {
        return;
    }
    let mut whole = Vec::with_capacity(DATA_HEAD_BYTES + length_bytes as usize);
    wire::chunk_header(&mut whole, cookie, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + length_bytes);
    whole.extend_from_slice(&offset_bytes.to_be_bytes());
    whole.resize(DATA_HEAD_BYTES + length_bytes as usize, 0);
    let mut rest = &message[..];
    while rest.len() >= DATA_HEAD_BYTES {
        let kind = u16::from_be_bytes([rest[6], rest[7]]);
        let length = u32::from_be_bytes(rest[16..20].try_into().expect("four bytes")) as usize;
        let at = u64::from_be_bytes(rest[20..28].try_into().expect("eight bytes")) - offset_bytes;
        let (this, others) = rest.split_at(DATA_HEAD_BYTES - 8 + length);
        if kind == chunk::OFFSET_DATA {
            let data = &this[DATA_HEAD_BYTES..];
            whole[DATA_HEAD_BYTES + at as usize..][..data.len()].copy_from_slice(data);
        }
        rest = others;
    }
    *message = whole;
}

/// Runs of whole pages of zeros, and what is between them.
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

    /// The reply to a read of `data`, and what a client makes of it.
    fn told(data: &[u8], offset_bytes: u64) -> (usize, Vec<u8>, Vec<u16>) {
        let mut message = b"before".to_vec();
        wire::chunk_header(&mut message, 7, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + data.len() as u32);
        message.extend_from_slice(&offset_bytes.to_be_bytes());
        let from = message.len();
        message.extend_from_slice(data);
        leave_out_zeros(&mut message, from, 7, offset_bytes);
        assert_eq!(&message[..6], b"before");
        let (mut rest, mut read, mut kinds) = (&message[6..], vec![1; data.len()], Vec::new());
        while !rest.is_empty() {
            let half = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
            let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four")) as usize;
            let at = (u64::from_be_bytes(rest[20..28].try_into().expect("eight")) - offset_bytes) as usize;
            let end = 20 + word(16);
            assert_eq!(half(4) & chunk::FLAG_DONE != 0, rest.len() == end, "the last one is said to be the last");
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
    fn zeros_are_left_out_wherever_they_are() {
        let (hole, data) = (chunk::OFFSET_HOLE, chunk::OFFSET_DATA);
        // Pages by letter; a dot is zeros.
        for (pages, offset_bytes, wanted) in [
            ("ab", 0, vec![data]),
            ("..", 0, vec![hole]),
            (".a.", 4096, vec![hole, data, hole]),
            ("a..b.c", 0, vec![data, hole, data, hole, data]),
            // Off the page, what is not a whole page of zeros is data.
            ("..", 512, vec![data, hole, data]),
            (".", 512, vec![data]),
        ] {
            let page = |letter: u8| [if letter == b'.' { 0 } else { letter }; 4096];
            let bytes: Vec<u8> = pages.bytes().flat_map(page).collect();
            let (length, read, kinds) = told(&bytes, offset_bytes);
            assert!(read == bytes, "{pages}");
            assert_eq!(kinds, wanted, "{pages}");
            let kept = if kinds.contains(&hole) { bytes.len() } else { bytes.len() + 1 };
            assert!(length < 34 + kept, "{pages} takes {length} B");
            let mut message = Vec::new();
            wire::chunk_header(&mut message, 7, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + bytes.len() as u32);
            message.extend_from_slice(&offset_bytes.to_be_bytes());
            message.extend_from_slice(&bytes);
            let whole = message.clone();
            leave_out_zeros(&mut message, DATA_HEAD_BYTES, 7, offset_bytes);
            put_in_zeros(&mut message, 7, offset_bytes, bytes.len() as u32);
            assert!(message == whole, "{pages}: as it was");
        }
    }
}
