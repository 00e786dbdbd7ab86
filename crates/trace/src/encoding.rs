//! Text encodings used by Windows programs: UTF-8 with a byte order mark, and UTF-16.

use std::io::{self, BufRead, BufReader, Read};

use crate::packed::BUFFER_BYTES;

/// Byte order mark of UTF-8.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// Number of bytes examined to distinguish UTF-16 from binary formats that begin with the same mark.
const LOOKED_AT: usize = 64;

/// Byte order of a UTF-16 unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

/// Converts text to UTF-8 without a mark; other data pass unchanged.
pub(crate) fn utf8(mut reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let mut head = Vec::with_capacity(LOOKED_AT);
    reader.by_ref().take(LOOKED_AT as u64).read_to_end(&mut head)?;
    let order = utf16(&head);
    let mark = if order.is_some() {
        2
    } else if head.starts_with(UTF8_MARK) {
        UTF8_MARK.len()
    } else {
        0
    };
    head.drain(..mark);
    let whole = io::Cursor::new(head).chain(reader);
    Ok(match order {
        None => Box::new(whole),
        Some(order) => {
            let decoded = Utf16 { units: whole, order, text: Vec::new(), at: 0, surrogate: None };
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoded))
        }
    })
}

/// Returns the byte order of UTF-16 text. After the mark, trace text has ASCII characters, so every other byte is 0.
fn utf16(head: &[u8]) -> Option<Order> {
    let (order, zero) = match head {
        [0xff, 0xfe, ..] => (Order::Little, 1),
        [0xfe, 0xff, ..] => (Order::Big, 0),
        _ => return None,
    };
    let (units, _) = head[2..].as_chunks::<2>();
    let plain = units.iter().filter(|unit| unit[zero] == 0 && unit[1 - zero] != 0).count();
    (4 * plain >= 3 * units.len() && plain > 0).then_some(order)
}

/// A reader that converts UTF-16 to UTF-8.
struct Utf16<R> {
    units: R,
    order: Order,
    /// Decoded text, and how many of its bytes were returned.
    text: Vec<u8>,
    at: usize,
    /// First half of a surrogate pair whose second half has not been read yet.
    surrogate: Option<u16>,
}

impl<R: Read> Utf16<R> {
    /// Decodes the next bytes; returns false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = Vec::with_capacity(BUFFER_BYTES);
        self.units.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut bytes)?;
        let (units, odd) = bytes.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(io::Error::other("the text in UTF-16 ends in the middle of a character"));
        }
        let unit = |unit: &[u8; 2]| match self.order {
            Order::Little => u16::from_le_bytes(*unit),
            Order::Big => u16::from_be_bytes(*unit),
        };
        let mut all: Vec<u16> = self.surrogate.take().into_iter().chain(units.iter().map(unit)).collect();
        if !units.is_empty() {
            self.surrogate = all.pop_if(|last| (0xd800..0xdc00).contains(last));
        }
        (self.text, self.at) = (String::from_utf16_lossy(&all).into_bytes(), 0);
        Ok(!units.is_empty() || !self.text.is_empty())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            if !self.fill()? {
                return Ok(0);
            }
        }
        let read = (&self.text[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: Vec<u8>) -> Vec<u8> {
        let mut text = Vec::new();
        utf8(Box::new(io::Cursor::new(bytes))).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    fn utf16_of(text: &str, order: Order) -> Vec<u8> {
        let bytes = |unit: u16| match order {
            Order::Little => unit.to_le_bytes(),
            Order::Big => unit.to_be_bytes(),
        };
        ("\u{feff}".to_owned() + text).encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn texts_of_every_encoding_are_read_as_utf8() {
        // A surrogate pair crosses the boundary between two decoded blocks.
        let text = format!("{}\u{1f4be} end\n", "0.5 fio ".repeat(BUFFER_BYTES / 16).split_at(BUFFER_BYTES / 2 - 1).0);
        for bytes in [
            text.clone().into_bytes(),
            [UTF8_MARK, text.as_bytes()].concat(),
            utf16_of(&text, Order::Little),
            utf16_of(&text, Order::Big),
        ] {
            assert!(decoded(bytes) == text.as_bytes());
        }
        assert_eq!(decoded(Vec::new()), b"");
    }

    #[test]
    fn bytes_that_only_begin_like_utf16_stay() {
        let record = [0xff, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(decoded(record.to_vec()), record);
        assert!(
            utf8(Box::new(io::Cursor::new(b"\xff\xfea\0b".to_vec()))).unwrap().read_to_end(&mut Vec::new()).is_err()
        );
    }
}
