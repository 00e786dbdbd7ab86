//! [`Header`] of an SRT file: `key = value;`, and `disks = { number -> { key = value; … } … };`.

use crate::error::{Problem, refused};
use crate::text::{hexadecimal, whole};
use crate::time::days_since_1970;

const NS_PER_S: u64 = 1_000_000_000;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DATE: &str = "a date such as `Sat Apr 18 09:30:00 1992`, from 1970 on";

/// Information from the header that is needed to interpret requests.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// Start of the recording in ns since 1970, with the time zone taken as UTC.
    pub(super) start_unix_ns: Option<u64>,
    disks: Vec<Disk>,
}

/// A disk described by the header.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Number of the disk in the header.
    pub(super) number: String,
    /// Model: the `disktype` in the header.
    pub(super) model: Option<String>,
    pub(super) sector_bytes: Option<u32>,
    /// Major numbers of the block device and the raw device.
    majors: Vec<u32>,
}

impl Header {
    pub(super) fn parse(text: &str) -> Result<Header, Problem> {
        let mut header = Header::default();
        // Names of the open braces, and the last name before an operator.
        let mut path: Vec<&str> = Vec::new();
        let (mut key, mut word, mut is_value) = ("", "", false);
        for token in Tokens(text) {
            match token {
                "{" => {
                    path.push(if key.is_empty() { word } else { key });
                    if let ["disks", number] = path[..] {
                        header.disks.push(Disk { number: number.to_owned(), ..Disk::default() });
                    }
                    (key, word, is_value) = ("", "", false);
                }
                "}" => {
                    path.pop();
                    (key, word, is_value) = ("", "", false);
                }
                ";" | "," => (key, word, is_value) = ("", "", false),
                "=" | "->" => (key, is_value) = (word, true),
                _ if is_value => {
                    header.set(&path, key, token)?;
                    is_value = false;
                }
                _ => word = token,
            }
        }
        Ok(header)
    }

    fn set(&mut self, path: &[&str], key: &str, value: &str) -> Result<(), Problem> {
        match (path, self.disks.last_mut()) {
            ([], _) if key == "tracedate" => {
                self.start_unix_ns = Some(unix_ns(value).ok_or_else(|| refused("tracedate", value.as_bytes(), DATE))?);
            }
            (["disks", _], Some(disk)) => match key {
                "disktype" => disk.model = Some(value.to_owned()),
                "sectorsize" => {
                    let bytes = number(value).filter(|&bytes| bytes > 0);
                    disk.sector_bytes =
                        Some(bytes.ok_or_else(|| refused("sectorsize", value.as_bytes(), "bytes from 1 to 2^32"))?);
                }
                "blockmajor" | "charactermajor" => disk.majors.extend(number(value)),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Returns the disk of a device number, which consists of major, unit and section of 8, 16 and 8 bits. The header
    /// numbers disks by unit or by the whole number.
    pub(super) fn disk(&self, device: u32) -> Option<&Disk> {
        let (major, unit) = (device >> 24, device >> 8 & 0xffff);
        let is_called = |disk: &&Disk| {
            let is_major = disk.majors.is_empty() || disk.majors.contains(&major);
            let called = number(&disk.number);
            is_major && (called == Some(unit) || called == Some(device) || called == Some(device & !0xff))
        };
        self.disks.iter().find(is_called)
    }

    /// Returns the sector size in bytes, if all disks have the same.
    pub(super) fn common_sector_bytes(&self) -> Option<u32> {
        let first = self.disks.first()?.sector_bytes?;
        self.disks.iter().all(|disk| disk.sector_bytes == Some(first)).then_some(first)
    }
}

/// Parses a decimal number, or a hexadecimal number after `0x`.
fn number(text: &str) -> Option<u32> {
    let value = if text.starts_with("0x") { hexadecimal(text.as_bytes()) } else { whole(text.as_bytes()) };
    value.and_then(|value| u32::try_from(value).ok())
}

/// Iterator over words, quoted texts without their quotes, and punctuation.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        if let Some(quoted) = text.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            self.0 = quoted.get(end + 1..).unwrap_or_default();
            return Some(&quoted[..end]);
        }
        let is_sign = |c: char| "{};,=".contains(c);
        let bytes = match text.chars().next()? {
            _ if text.starts_with("->") => 2,
            c if is_sign(c) => 1,
            c => {
                let rest = &text[c.len_utf8()..];
                let ends = |&(at, c): &(usize, char)| {
                    is_sign(c) || c == '"' || c.is_whitespace() || rest[at..].starts_with("->")
                };
                c.len_utf8() + rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at)
            }
        };
        let (token, rest) = text.split_at(bytes);
        self.0 = rest;
        Some(token)
    }
}

/// Parses `Www Mmm dd hh:mm:ss [zone] yyyy` to ns since 1970, ignoring the time zone.
fn unix_ns(date: &str) -> Option<u64> {
    let words: Vec<&str> = date.split_whitespace().collect();
    let (month, day, time, year) = match words[..] {
        [_, month, day, time, year] | [_, month, day, time, _, year] => (month, day, time, year),
        _ => return None,
    };
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as i64;
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year: i64 = year.parse().ok().filter(|year| (1970..=2200).contains(year))?;
    let mut parts = time.split(':').map(|part| part.parse::<u64>().ok());
    let [hour, minute, second] = [parts.next()??, parts.next()??, parts.next()??];
    if hour > 23 || minute > 59 || second > 60 || parts.next().is_some() {
        return None;
    }
    Some(
        (u64::try_from(days_since_1970(year, month, day)).ok()? * 86_400 + hour * 3_600 + minute * 60 + second)
            * NS_PER_S,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(unix_ns("Thu Jan  1 00:00:00 1970"), Some(0));
        assert_eq!(unix_ns("Sat Apr 18 09:30:01 1992"), Some(703_589_401_000_000_000));
        assert_eq!(unix_ns("Tue Feb 29 23:59:59 PST 2000"), Some(951_868_799_000_000_000));
        for wrong in ["", "Sat Apr 18 1992", "Sat Foo 18 00:00:00 1992", "x Apr 40 0:0:0 1992", "x Apr 1 0:0 1992"] {
            assert_eq!(unix_ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn disks_are_found_by_unit_major_and_whole_number() {
        let text = "a = 1;disks={ 3->{ disktype=\"A B\"; seekparms = { x = 1; sectorsize = 9; }; sectorsize=256;
            blockmajor=7; charactermajor = 4; } 0x1f000500 -> { sectorsize = 512; } };";
        let header = Header::parse(text).unwrap();
        let of = |device| header.disk(device).map(|disk| disk.sector_bytes);
        assert_eq!((of(0x0700_0302), of(0x0400_0300)), (Some(Some(256)), Some(Some(256))));
        assert_eq!((of(0x0500_0300), of(0x1f00_0507)), (None, Some(Some(512))));
        assert_eq!(header.disk(0x0700_0300).unwrap().model.as_deref(), Some("A B"));
        assert_eq!(header.common_sector_bytes(), None);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(Header::parse("tracedate = \"yesterday\";").unwrap_err().0, "tracedate");
        assert_eq!(Header::parse("disks = { 1 -> { sectorsize = 0; } };").unwrap_err().0, "sectorsize");
    }
}
