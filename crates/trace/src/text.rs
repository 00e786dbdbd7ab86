//! Exact parsing of numbers in lines of text: 18 digits exceed the precision of a double.

use crate::error::{Problem, refused};

/// Parses a whole number; `None` for anything else, including overflow.
#[inline]
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let (mut value, mut rest) = (0u64, text);
    if text.len() == 20 {
        // Only these can overflow: the first 19 digits do not.
        let last = u64::from(text[19].wrapping_sub(b'0'));
        return whole(&text[..19])?.checked_mul(10)?.checked_add(last).filter(|_| last <= 9);
    }
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        value = value * 100_000_000 + eight_digits(*eight)?;
        rest = behind;
    }
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// Parses eight digits at once: neighbours are added to pairs, pairs to fours, fours to the number. No sum overflows
/// its place.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    const HIGH_HALVES: u64 = u64::from_le_bytes([0xf0; 8]);
    let word = u64::from_le_bytes(text);
    // A digit's high half is 3, and stays 3 when 6 is added.
    if word & HIGH_HALVES != ZEROS || (word + u64::from_le_bytes([6; 8])) & HIGH_HALVES != ZEROS {
        return None;
    }
    let digits = word - ZEROS;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// Parses a hexadecimal number, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value, &byte| Some(value << 4 | u64::from(char::from(byte).to_digit(16)?)))
}

/// Parses a decimal number times 10^`exponent`, which is from 0 to 18, rounded to a whole one: `decimal(b"1.5", 9)`
/// reads seconds as nanoseconds. No sign, no `e`; digits before or after the point may be absent, not both.
#[inline]
pub(crate) fn decimal(text: &[u8], exponent: u32) -> Option<u64> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (before, after) = match point {
        None => return whole(text)?.checked_mul(10u64.pow(exponent)),
        Some(point) => (&text[..point], &text[point + 1..]),
    };
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let units = if before.is_empty() { 0 } else { whole(before)? };
    let mut fraction = 0;
    for place in 0..exponent as usize {
        let digit = after.get(place).map_or(Some(0), |byte| char::from(*byte).to_digit(10))?;
        fraction = fraction * 10 + u64::from(digit);
    }
    let beyond = after.get(exponent as usize..).unwrap_or_default();
    if !beyond.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let up = u64::from(beyond.first().is_some_and(|&digit| digit >= b'5'));
    units.checked_mul(10u64.pow(exponent))?.checked_add(fraction)?.checked_add(up)
}

/// Returns the first `N` fields between `separator`s, each without surrounding blanks, and the total number of fields.
#[inline]
pub(crate) fn fields<const N: usize>(line: &[u8], separator: u8) -> ([&[u8]; N], usize) {
    let mut fields: [&[u8]; N] = [&[]; N];
    let (mut count, mut start) = (0, 0);
    let mut end_at = |end: usize| {
        if let Some(slot) = fields.get_mut(count) {
            *slot = line[start..end].trim_ascii();
        }
        count += 1;
        start = end + 1;
    };
    let (eights, rest) = line.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        let mut matches = equal_bytes(*eight, separator);
        while matches != 0 {
            end_at(8 * index + matches.trailing_zeros() as usize / 8);
            matches &= matches - 1;
        }
    }
    for (index, &byte) in rest.iter().enumerate() {
        if byte == separator {
            end_at(8 * eights.len() + index);
        }
    }
    end_at(line.len());
    (fields, count)
}

/// The top bit of each byte that is `wanted`, the first byte lowest. Fields are too short for a search in each to pay.
#[inline]
fn equal_bytes(eight: [u8; 8], wanted: u8) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let differences = u64::from_le_bytes(eight) ^ u64::from_le_bytes([wanted; 8]);
    !(((differences & LOW) + LOW) | differences | LOW)
}

/// Returns the first `N` words between blanks, and the total number of words.
pub(crate) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut fields: [&[u8]; N] = [&[]; N];
    let mut count = 0;
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if let Some(slot) = fields.get_mut(count) {
            *slot = word;
        }
        count += 1;
    }
    (fields, count)
}

/// Parses an address in units of `unit_bytes`; returns bytes.
///
/// # Errors
/// When it is not a whole number, or not below 2^63 bytes.
#[inline]
pub(crate) fn offset_bytes(field: &'static str, text: &[u8], unit_bytes: u32) -> Result<u64, Problem> {
    let bytes =
        whole(text).and_then(|units| units.checked_mul(u64::from(unit_bytes))).filter(|&bytes| bytes < BYTES_END);
    bytes.ok_or_else(|| refused(field, text, &format!("{}, below 2^63 bytes", units_title(unit_bytes))))
}

/// Parses a length in units of `unit_bytes`; returns bytes.
///
/// # Errors
/// When it is not a whole number, or not below 2^32 bytes.
#[inline]
pub(crate) fn length_bytes(field: &'static str, text: &[u8], unit_bytes: u32) -> Result<u32, Problem> {
    let bytes = whole(text).and_then(|units| u32::try_from(units.checked_mul(u64::from(unit_bytes))?).ok());
    bytes.ok_or_else(|| refused(field, text, &format!("{}, below 2^32 bytes", units_title(unit_bytes))))
}

/// Upper limit of addresses, which no device reaches.
pub(crate) const BYTES_END: u64 = 1 << 63;

fn units_title(unit_bytes: u32) -> String {
    match unit_bytes {
        1 => "a whole number of bytes".to_owned(),
        _ => format!("a whole number of {unit_bytes}-byte sectors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal(b"128166372003061629", 0), Some(128_166_372_003_061_629));
        assert_eq!(decimal(b"13.191135", 6), Some(13_191_135));
        assert_eq!(decimal(b"1.0000000005", 9), Some(1_000_000_001));
        assert_eq!(decimal(b"1.00000000049", 9), Some(1_000_000_000));
        assert_eq!(decimal(b".5", 3), Some(500));
        assert_eq!(decimal(b"7.", 3), Some(7_000));
        assert_eq!(decimal(b"18446744073709551615", 0), Some(u64::MAX));
        for wrong in
            ["", ".", "-1", "1e3", "1.x", "1.5x", "18446744073709551616", "0x1", " 1", "99999999999999999999999"]
        {
            assert_eq!(decimal(wrong.as_bytes(), 3), None, "{wrong}");
        }
    }

    #[test]
    fn digits_are_read_eight_at_a_time() {
        for text in ["12345678", "1234567890123456", "0000000000000000001", "99999999999999999999", "00000000"] {
            assert_eq!(whole(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for place in 0..12 {
            for byte in 0..=u8::MAX {
                let mut text = *b"123456789012";
                text[place] = byte;
                let expected =
                    std::str::from_utf8(&text).ok().filter(|_| byte != b'+').and_then(|text| text.parse().ok());
                assert_eq!(whole(&text), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn fields_are_split_at_any_position() {
        for length in 0..40 {
            for (place, also) in (0..length).flat_map(|place| (0..length).map(move |also| (place, also))) {
                let mut line = vec![b'-'; length];
                (line[place], line[also]) = (b',', b',');
                let (fields, count) = fields::<3>(&line, b',');
                let expected: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
                assert_eq!((&fields[..count], count), (&expected[..], expected.len()));
            }
        }
        assert_eq!(fields::<1>(b"\xac\xad,\x2d", b','), ([&b"\xac\xad"[..]], 2));
    }

    #[test]
    fn hexadecimal_with_or_without_prefix() {
        assert_eq!(hexadecimal(b"2a"), Some(42));
        assert_eq!(hexadecimal(b"0x2A"), Some(42));
        assert_eq!(hexadecimal(b"0x"), None);
        assert_eq!(hexadecimal(b"12345678123456781"), None);
    }

    #[test]
    fn fields_are_counted_beyond_those_kept() {
        let (fields, count) = fields::<2>(b"a, b ,c", b',');
        assert_eq!((fields, count), ([&b"a"[..], b"b"], 3));
        let (fields, count) = words::<3>(b"  a\t b ");
        assert_eq!((fields, count), ([&b"a"[..], b"b", b""], 2));
    }
}
