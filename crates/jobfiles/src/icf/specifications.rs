//! [`Specifications`]: the access specifications of a file and those built into Iometer.

use headstack_workload::{AccessLine, AccessSpecification, InputError};

use super::text::{Entries, Entry, Fields};
use crate::Remark;

/// Maximum number of lines of a specification and characters of a name in Iometer (`MAX_ACCESS_SPECS`, `MAX_NAME`).
const LINES_MAX: usize = 100;
const NAME_MAX: usize = 80;

/// Maximum delay between bursts, in ms: one hour.
const DELAY_MAX_MS: u64 = 3_600_000;

const END: &str = "END access specifications";
const NAME: &str = "Access specification name,default assignment";
const COLUMNS: &str = "size,% of size,% reads,% random,delay,burst,align,reply";
const OLD_COLUMNS: &str = "size,% of size,% reads,% random,delay,burst";

/// Access specifications by name. An idle specification has no lines.
pub(super) struct Specifications {
    specified: Vec<(AccessSpecification, bool)>,
}

impl Specifications {
    pub(super) fn new() -> Specifications {
        Specifications { specified: Vec::new() }
    }

    /// Returns the specification with this name. If the file has none, returns Iometer's own.
    pub(super) fn named(&self, name: &str) -> Option<AccessSpecification> {
        let own = self.specified.iter().find(|(known, _)| known.name.eq_ignore_ascii_case(name));
        own.map(|(known, _)| known.clone()).or_else(|| built_in(name))
    }

    /// Returns the default specifications, for disk workers that have none assigned.
    pub(super) fn by_default(&self) -> impl Iterator<Item = &AccessSpecification> {
        self.specified.iter().filter(|(_, by_default)| *by_default).map(|(known, _)| known)
    }

    /// Returns all specifications of the file, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = &AccessSpecification> {
        self.specified.iter().map(|(known, _)| known)
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.all().map(|known| known.name.as_str()).collect();
        names.join("; ")
    }

    /// Reads the section of a file whose specifications have names.
    pub(super) fn read(&mut self, entries: &mut Entries, remarks: &mut Vec<Remark>) -> Result<(), InputError> {
        loop {
            let entry = entries.before(END)?;
            if entry.key.eq_ignore_ascii_case(END) {
                return Ok(());
            }
            if !entry.key.eq_ignore_ascii_case(NAME) {
                return Err(entries.misplaced(&entry, &format!("'{NAME}, '{END}")));
            }
            let mut fields = entries.fields(&entry)?;
            let name = fields.text("name")?.to_owned();
            if name.chars().count() > NAME_MAX {
                return Err(fields.error("name", format!("{name:?} is too long; the maximum is {NAME_MAX} characters")));
            }
            let assignments = [("NONE", false), ("ALL", true), ("DISK", true), ("NET", false)];
            let by_default = fields.word("default assignment", &assignments)?;
            let columns = entries.before(END)?;
            if !columns.key.starts_with("size") {
                return Err(entries.misplaced(&columns, &format!("'{COLUMNS}")));
            }
            let lines = lines(entries, &name, &columns, remarks)?;
            let specification = (AccessSpecification { name, lines }, by_default);
            // A repeated name replaces the earlier one.
            let same =
                |known: &&mut (AccessSpecification, bool)| known.0.name.eq_ignore_ascii_case(&specification.0.name);
            match self.specified.iter_mut().find(same) {
                Some(known) => *known = specification,
                None => self.specified.push(specification),
            }
        }
    }

    /// Reads the section of a file before 1998.05.21. Specifications have no names and end when their shares reach 100
    /// %, and every worker gets all of them.
    pub(super) fn read_old(&mut self, entries: &mut Entries, section: &Entry) -> Result<(), InputError> {
        let mut sections = vec![];
        sections.extend(section.values.iter().copied());
        while let Some(entry) = entries.next() {
            if entry.key.eq_ignore_ascii_case(END) {
                break;
            }
            sections.extend(entry.values);
        }
        let (mut lines, mut total) = (Vec::new(), 0);
        for value in sections {
            let mut fields = entries.fields_of(OLD_COLUMNS, value, true);
            let (share, line) = line(&mut fields)?;
            total += share;
            lines.extend(line);
            if total > 100 {
                return Err(
                    fields.error("% of size", format!("the shares sum to {total}; they must sum to exactly 100"))
                );
            }
            if total == 100 {
                let name = format!("Untitled {}", self.specified.len() + 1);
                let specification = AccessSpecification { name, lines: std::mem::take(&mut lines) };
                self.specified.push((specification, true));
                total = 0;
            }
        }
        if total == 0 {
            return Ok(());
        }
        Err(entries.error(
            section.line,
            "% of size",
            format!("the shares sum to {total}; they must sum to exactly 100"),
        ))
    }
}

/// Reads the lines below the column headings.
fn lines(
    entries: &Entries,
    name: &str,
    columns: &Entry,
    remarks: &mut Vec<Remark>,
) -> Result<Vec<AccessLine>, InputError> {
    if columns.values.len() > LINES_MAX {
        let message = format!("{name:?} has {} lines; the maximum is {LINES_MAX}", columns.values.len());
        return Err(entries.error(columns.line, "size", message));
    }
    let (mut lines, mut total) = (Vec::new(), 0);
    for &value in &columns.values {
        let mut fields = entries.fields_of(COLUMNS, value, false);
        let (share, line) = line(&mut fields)?;
        let align_bytes = fields.number_u32("align", 0..=u32::MAX)?;
        if fields.number("reply", 0..=u64::from(u32::MAX))? > 0 && remarks.iter().all(|remark| remark.option != "reply")
        {
            remarks.push(Remark {
                line: u32::try_from(value.line).unwrap_or(u32::MAX),
                option: "reply".to_owned(),
                message: "replies are only for network workers".to_owned(),
            });
        }
        if !fields.is_empty() {
            return Err(
                fields.error("reply", format!("more than eight fields in {:?}; allowed: {COLUMNS}", value.text))
            );
        }
        total += share;
        lines.extend(line.map(|line| AccessLine { align_bytes: (align_bytes > 0).then_some(align_bytes), ..line }));
    }
    // Iometer saves its idle specification without lines.
    if total == 100 || columns.values.is_empty() {
        return Ok(lines);
    }
    let message = format!("the shares of {name:?} sum to {total}; they must sum to exactly 100");
    Err(entries.error(columns.line, "% of size", message))
}

/// Parses the first six fields of a line. Returns the share and the access line; a line without a share is ignored.
fn line(fields: &mut Fields) -> Result<(u64, Option<AccessLine>), InputError> {
    let size_bytes = fields.number_u32("size", 1..=u32::MAX)?;
    let share = fields.number("% of size", 0..=100)?;
    let line = AccessLine {
        size_bytes,
        share_percent: share as f64,
        read_percent: fields.number("% reads", 0..=100)? as f64,
        random_percent: fields.number("% random", 0..=100)? as f64,
        trim_percent: 0.0,
        delay_ns: fields.number("delay", 0..=DELAY_MAX_MS)? * 1_000_000,
        burst: fields.number_u32("burst", 1..=u32::MAX)?,
        align_bytes: None,
    };
    Ok((share, (share > 0).then_some(line)))
}

/// A family of built-in specifications with one request size.
struct BuiltIn {
    size: &'static str,
    size_bytes: u32,
    reads: &'static [u32],
    aligned: bool,
}

const FIFTHS: &[u32] = &[100, 75, 50, 25, 0];
const HALVES: &[u32] = &[100, 50, 0];

/// The specifications of `InsertDefaultSpecs` (`AccessSpecList.cpp`), in order. "All in one" follows them.
const BUILT_IN: [BuiltIn; 7] = [
    BuiltIn { size: "512 B", size_bytes: 512, reads: FIFTHS, aligned: false },
    BuiltIn { size: "4 KiB", size_bytes: 4_096, reads: FIFTHS, aligned: false },
    BuiltIn { size: "4 KiB aligned", size_bytes: 4_096, reads: HALVES, aligned: true },
    BuiltIn { size: "16 KiB", size_bytes: 16_384, reads: FIFTHS, aligned: false },
    BuiltIn { size: "32 KiB", size_bytes: 32_768, reads: FIFTHS, aligned: false },
    BuiltIn { size: "64 KiB", size_bytes: 65_536, reads: HALVES, aligned: false },
    BuiltIn { size: "256 KiB", size_bytes: 262_144, reads: HALVES, aligned: false },
];

fn built_in(name: &str) -> Option<AccessSpecification> {
    let specification = |name: &str, lines| Some(AccessSpecification { name: name.to_owned(), lines });
    if name.eq_ignore_ascii_case("Idle") {
        return specification("Idle", Vec::new());
    }
    if name.eq_ignore_ascii_case("Default") {
        return specification("Default", vec![plain(2_048, 67, 100, Some(2_048), 100)]);
    }
    let rows = || BUILT_IN.iter().flat_map(|kind| kind.reads.iter().map(move |&reads| (kind, reads)));
    if name.eq_ignore_ascii_case("All in one") {
        let count = rows().count() as u32;
        // Shares are as even as whole percentages permit; the first lines get the remainder.
        let share = |index: u32| 100 / count + u32::from(index < 100 % count);
        let lines = (0..).zip(rows()).map(|(index, (kind, reads))| kind.line(reads, share(index))).collect();
        return specification("All in one", lines);
    }
    rows().find_map(|(kind, reads)| {
        let known = format!("{}; {reads}% Read; {}% random", kind.size, if kind.aligned { 100 } else { 0 });
        known
            .eq_ignore_ascii_case(name)
            .then(|| AccessSpecification { name: known, lines: vec![kind.line(reads, 100)] })
    })
}

impl BuiltIn {
    fn line(&self, reads: u32, share: u32) -> AccessLine {
        let (random, align_bytes) = if self.aligned { (100, Some(self.size_bytes)) } else { (0, None) };
        plain(self.size_bytes, reads, random, align_bytes, share)
    }
}

fn plain(size_bytes: u32, reads: u32, random: u32, align_bytes: Option<u32>, share: u32) -> AccessLine {
    AccessLine {
        size_bytes,
        share_percent: f64::from(share),
        read_percent: f64::from(reads),
        random_percent: f64::from(random),
        trim_percent: 0.0,
        delay_ns: 0,
        burst: 1,
        align_bytes,
    }
}
