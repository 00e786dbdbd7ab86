//! [`CsvColumns`]: the declaration of a table:
//! `time=ts:us,offset=lba:512,length=size,op=rw,device=vol,response=lat:ms`, or the same in a file with one key per
//! line.

mod column;
mod values;
mod words;

use std::ops::RangeInclusive;

use super::split::Separator;
use crate::error::Problem;
use crate::formats::Order;
use crate::meta::ResponseSpan;
use crate::time::{Calendar, TimeUnit};

pub(super) use column::Base;
use column::{COLUMNS_MAX, Column, ColumnPlace};
use values::{TimeForm, Values, address, at, base, bytes, column, columns, devices, names, separator, span, time};
pub(super) use words::Words;

/// Number of fields of a request, in the order of a layout's slots.
pub(super) const SLOTS: usize = 11;
pub(super) const TIME: usize = 0;
pub(super) const OFFSET: usize = 1;
pub(super) const LENGTH: usize = 2;
pub(super) const OPERATION: usize = 3;
pub(super) const DEVICE: usize = 4;
pub(super) const RESPONSE: usize = 5;
pub(super) const KEY: usize = 6;
pub(super) const COUNT: usize = 7;
pub(super) const PID: usize = 8;
pub(super) const PROCESS: usize = 9;
/// Slot of the part of a device's name after the point.
pub(super) const UNIT: usize = 10;

/// The columns of a table, their units and words.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvColumns {
    /// Description for users; empty if there is none.
    pub(super) title: String,
    /// A sample line; empty if there is none.
    pub(super) sample: String,
    pub(super) notes: Vec<String>,
    pub(super) order: Order,
    /// Number of columns of a line, if it may differ from that of the first line.
    pub(super) count: Option<RangeInclusive<usize>>,
    /// Header columns of a format that needs no header, in lower case, only letters and digits.
    pub(super) header: Vec<Vec<String>>,
    time: Option<(Column, TimeForm)>,
    /// Whether times are completions: a request arrived its response time before.
    pub(super) is_at_completion: bool,
    base: Option<Base>,
    /// Column of offsets, and the bytes of its unit.
    pub(super) offset: Option<(Column, u32)>,
    pub(super) key: Option<Column>,
    /// Column of lengths, and the bytes of its unit.
    pub(super) length: Option<(Column, u32)>,
    /// Length of requests whose length is not recorded.
    pub(super) block_bytes: u32,
    /// Whether the format leaves the block size open.
    pub(super) has_open_sector: bool,
    pub(super) operation: Option<Column>,
    devices: Vec<Column>,
    pid: Option<Column>,
    process: Option<Column>,
    repeats: Option<Column>,
    pub(super) response: Option<(Column, TimeUnit)>,
    pub(super) span: ResponseSpan,
    pub(super) words: Words,
    pub(super) separator: Separator,
    /// Lines before the header, or before the first request if there is none.
    pub(super) skip: u64,
}

/// How times are interpreted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Clockwork {
    /// There are no times.
    Order,
    /// Absolute dates of a calendar.
    Dates(Calendar),
    /// Times since a declared base, or one that the file determines.
    Since(Option<Base>, TimeUnit),
}

/// Length of an object of which only the key is known.
pub(super) const KEY_BYTES: u32 = 4_096;

impl CsvColumns {
    /// Reads a declaration: `KEY=VALUE` between commas.
    ///
    /// A column is a name of the header, in any case, or a number from 1. `offset` or `key` is required, and `length` or
    /// `block`. `time`, without which requests are only numbered, and `response` have a unit behind a colon: `s`, `ms`, `us`,
    /// `ns`, `100ns` or, for `time`, `filetime` (100 ns since 1601) or `date` (a text such as `2026-01-31 12:00:00.5`); `offset` and `length` may: `bytes` (which is understood)
    /// or a number of bytes. `key` names an object, by which its address is made; with an `offset`, that is one in the object.
    /// `at=completion` says that `time` is when a request completed. `block` is the bytes of every request. `op`, `device` (two columns with a + between), `pid`, `process` and `count`, of
    /// requests that a line stands for, are columns too. `separator` is `comma` (understood), `semicolon`, `tab`, `pipe`,
    /// `blank` (any number of blanks and tabs) or a character; `skip` a number of lines; `base` selects whether times count from
    /// 1970 (`unix`) or from the start of the `recording`; by default the first time decides; `read`, `write`, `trim`,
    /// `flush` and `unknown` are words with `|` between.
    ///
    /// # Errors
    /// What is wrong, and what is allowed, on one line.
    pub fn parse(text: &str) -> Result<CsvColumns, String> {
        CsvColumns::declared(&Values::from_text(text)?)
    }

    /// Reads a declaration from a file: TOML with one key per line. A file may also have `title`, `sample`, `notes`,
    /// `columns` (their number: `9`, `5-` or `8-10`), `header` (names of optional headers), `order` (`arrival` or
    /// `any`), `span` (of response times), and `sector = "open"`.
    ///
    /// # Errors
    /// As for [`CsvColumns::parse`].
    pub fn from_toml(text: &str) -> Result<CsvColumns, String> {
        CsvColumns::declared(&Values::from_toml(text)?)
    }

    fn declared(values: &Values) -> Result<CsvColumns, String> {
        let optional = |key: &str| values.get(key).map(|value| column(key, value)).transpose();
        let response = values.get("response").map(|value| match time("response", value)? {
            (column, TimeForm::Unit(unit)) => Ok((column, unit)),
            (_, TimeForm::Dates(_)) => {
                Err("response: filetime and date are dates; a duration is in s, ms, us, ns or 100ns".to_owned())
            }
        });
        let offset = values.get("offset").map(|value| address("offset", value)).transpose()?;
        let key = optional("key")?;
        let length = values.get("length").map(|value| address("length", value)).transpose()?;
        let block = values.get("block").map(|value| bytes("block", value)).transpose()?;
        if offset.is_none() && key.is_none() {
            return Err("`offset` must be declared: offset=lba:512, or key=NAME".to_owned());
        }
        let is_list = values.is_file() && values.get("sector").is_some();
        if length.is_none() && block.is_none() && !is_list {
            return Err("`length` must be declared: length=size, or block=4096 if all have the same length".to_owned());
        }
        let unit_bytes = offset.as_ref().map_or(KEY_BYTES, |(_, unit_bytes)| *unit_bytes);
        let columns = CsvColumns {
            title: values.get("title").unwrap_or_default().to_owned(),
            sample: values.get("sample").unwrap_or_default().to_owned(),
            notes: values.get("notes").map_or(Vec::new(), |notes| notes.split('|').map(str::to_owned).collect()),
            order: match values.get("order") {
                None | Some("any") => Order::Any,
                Some("arrival") => Order::Arrival,
                Some(other) => return Err(format!("order: must be arrival or any, not `{other}`")),
            },
            count: values.get("columns").map(columns).transpose()?,
            header: values.get("header").map_or(Vec::new(), names),
            time: values.get("time").map(|value| time("time", value)).transpose()?,
            is_at_completion: values.get("at").map_or(Ok(false), at)?,
            base: values.get("base").map(base).transpose()?,
            offset,
            key,
            length,
            block_bytes: block.unwrap_or(unit_bytes),
            has_open_sector: is_list,
            operation: optional("op")?,
            devices: values.get("device").map_or(Ok(Vec::new()), devices)?,
            pid: optional("pid")?,
            process: optional("process")?,
            repeats: optional("count")?,
            response: response.transpose()?,
            span: values.get("span").map_or(Ok(ResponseSpan::AtTheHost), span)?,
            words: Words::declared(values)?,
            separator: values.get("separator").map_or(Ok(Separator::Byte(b',')), separator)?,
            skip: values.get("skip").map_or(Ok(0), |text| {
                text.parse().map_err(|_| format!("skip: must be a number of lines, not `{text}`"))
            })?,
        };
        match (&columns.time, columns.base) {
            (Some((_, TimeForm::Dates(_))), Some(Base::Recording)) => {
                Err("base: not allowed with file times and dates, which are absolute".to_owned())
            }
            (None, Some(_)) => Err("base: not allowed without a time".to_owned()),
            _ if columns.is_at_completion && (columns.time.is_none() || columns.response.is_none()) => {
                Err("at: the arrival of a request follows from its completion by time and response; declare both"
                    .to_owned())
            }
            _ => Ok(columns),
        }
    }

    /// Description for users.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// A sample line.
    pub(crate) fn sample(&self) -> &str {
        &self.sample
    }

    /// Order of its requests. Those without times are in line order.
    pub(crate) fn order(&self) -> Order {
        if self.time.is_none() { Order::Arrival } else { self.order }
    }

    /// How times are interpreted, for a file that has them.
    pub(super) fn clockwork(&self) -> Clockwork {
        match &self.time {
            None => Clockwork::Order,
            Some((_, TimeForm::Dates(calendar))) => Clockwork::Dates(*calendar),
            Some((_, TimeForm::Unit(unit))) => Clockwork::Since(self.base, *unit),
        }
    }

    /// Whether the file has a header, because columns are declared by name.
    pub(super) fn has_header(&self) -> bool {
        self.columns().any(|(column, _)| matches!(column.place, ColumnPlace::Name(_)))
    }

    /// Columns from 0 and the slots that they fill, in column order.
    ///
    /// # Errors
    /// When the header lacks a name, or has it twice.
    pub(super) fn places(&self, header: Option<&[u8]>) -> Result<Vec<(usize, usize)>, Problem> {
        let header: Vec<&[u8]> =
            header.map_or(Vec::new(), |line| self.separator.split(line).take(COLUMNS_MAX).collect());
        let mut places = Vec::new();
        for (column, slot) in self.columns() {
            let place = match &column.place {
                ColumnPlace::Number(number) => *number,
                ColumnPlace::Name(name) => {
                    let mut found =
                        header.iter().enumerate().filter(|(_, field)| field.eq_ignore_ascii_case(name.as_bytes()));
                    match (found.next(), found.next()) {
                        (Some((place, _)), None) => place,
                        (None, _) if column.is_optional => continue,
                        (None, _) => return Err(("header", missing(name, &header))),
                        (Some(_), Some(_)) => {
                            return Err(("header", format!("there are two columns `{name}`; use the column's number")));
                        }
                    }
                }
            };
            places.push((place, slot));
        }
        places.sort_unstable();
        Ok(places)
    }

    fn columns(&self) -> impl Iterator<Item = (&Column, usize)> {
        let slots = [
            (self.time.as_ref().map(|(column, _)| column), TIME),
            (self.offset.as_ref().map(|(column, _)| column), OFFSET),
            (self.length.as_ref().map(|(column, _)| column), LENGTH),
            (self.operation.as_ref(), OPERATION),
            (self.devices.first(), DEVICE),
            (self.devices.get(1), UNIT),
            (self.response.as_ref().map(|(column, _)| column), RESPONSE),
            (self.key.as_ref(), KEY),
            (self.repeats.as_ref(), COUNT),
            (self.pid.as_ref(), PID),
            (self.process.as_ref(), PROCESS),
        ];
        slots.into_iter().filter_map(|(column, slot)| Some((column?, slot)))
    }
}

/// Error text with the existing columns.
fn missing(name: &str, header: &[&[u8]]) -> String {
    let names = header.iter().map(|field| String::from_utf8_lossy(field)).collect::<Vec<_>>().join(", ");
    let names: String = names.chars().filter(|c| !c.is_control()).take(300).collect();
    format!("there is no column `{name}` among {names}")
}
