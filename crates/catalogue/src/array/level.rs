//! [`NamedLevel`]: RAID levels by their common names, with the failures that a group survives and the capacity that it
//! exports.

use headstack_sim::array::levels::{Choice, Redundancy};
use headstack_sim::description::level::Level;

use super::file::LevelName;

/// A RAID level by name: a level of array files, or RAID 50 or 60, which consist of spans of RAID 5 or 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLevel {
    /// The corresponding level in array files.
    pub in_files: LevelName,
    /// Whether the name includes spans, like `raid50`; such a level has two or more spans.
    is_spanned: bool,
}

impl NamedLevel {
    /// Returns all levels, with an example each for K+M and dRAID.
    pub fn all() -> impl Iterator<Item = NamedLevel> {
        let of_files = std::iter::once(LevelName::Jbod).chain(Level::ALL.iter().copied().map(LevelName::LimitScope));
        let spanned = Level::ALL.iter().filter(|level| level.rules().has_spans);
        let spanned = spanned.map(|&level| NamedLevel { in_files: LevelName::LimitScope(level), is_spanned: true });
        of_files.map(|in_files| NamedLevel { in_files, is_spanned: false }).chain(spanned)
    }

    /// Parses the name of a level.
    ///
    /// # Errors
    /// If the name is unknown; the message lists the allowed names.
    pub fn parse(text: &str) -> Result<NamedLevel, String> {
        if let Some(in_files) = LevelName::parse(text) {
            return Ok(NamedLevel { in_files, is_spanned: false });
        }
        let named_level = NamedLevel::all().find(|level| level.is_spanned && level.name() == text);
        named_level.ok_or_else(|| {
            let forms: Vec<String> = NamedLevel::all().map(NamedLevel::form).collect();
            format!("level: {}; allowed: {}", quoted(text), forms.join(", "))
        })
    }

    /// Parses a level name for `choose --levels`, which must be complete. Spans are named by the level of each span.
    ///
    /// # Errors
    /// If `choose` does not support the level; the message lists the allowed levels.
    pub fn parse_choice(text: &str) -> Result<NamedLevel, String> {
        if let Ok(level) = NamedLevel::parse(text)
            && level.choice().is_some()
            && level.name() == text
        {
            return Ok(level);
        }
        let named = quoted(text);
        Err(if text.starts_with("draid") {
            format!("levels: {named} is incomplete or not supported; use a form such as draid2:8d:1s")
        } else {
            format!("levels: {named} is not a candidate; allowed: {}", Level::CHOICES)
        })
    }

    /// Returns the level's name, such as `raid5`, `4+2` or `raid60`.
    pub fn name(self) -> String {
        self.with_spans(self.in_files.name())
    }

    /// Returns the level's name with letters instead of variable counts, such as `K+M`.
    pub fn form(self) -> String {
        let form = match self.in_files {
            LevelName::Jbod => self.in_files.name(),
            LevelName::LimitScope(level) => level.form().to_owned(),
        };
        self.with_spans(form)
    }

    fn with_spans(self, name: String) -> String {
        if self.is_spanned { name + "0" } else { name }
    }

    /// Returns the level as `choose` considers it. `None` for independent drives, and for spans, which follow from the
    /// number of drives.
    pub fn choice(self) -> Option<Choice> {
        match self.in_files {
            LevelName::LimitScope(level) if !self.is_spanned => Some(level.rules().choice),
            LevelName::LimitScope(_) | LevelName::Jbod => None,
        }
    }

    /// Returns how many failures a group with these numbers of drives and spans survives.
    ///
    /// # Errors
    /// If the numbers are impossible.
    pub fn redundancy(self, drives: i64, spans: i64) -> Result<Redundancy, String> {
        let (drives, spans) = self.check(drives, spans)?;
        Ok(self.in_files.level().redundancy(drives, spans))
    }

    /// Returns the bytes that a group with these numbers of drives and spans exports, ignoring rounding to whole
    /// stripes.
    ///
    /// # Errors
    /// If the numbers are impossible.
    pub fn usable_bytes(self, drives: i64, spans: i64, drive_bytes: u64) -> Result<u64, String> {
        let (drives, spans) = self.check(drives, spans)?;
        Ok(self.in_files.level().usable_bytes(drives, spans, drive_bytes))
    }

    /// Returns the usual groups of this level up to `drives_max` drives, as (drives, level, spans).
    pub fn usual_layouts(self, drives_max: u32) -> impl Iterator<Item = (u32, NamedLevel, u32)> {
        let layouts = self.in_files.level().usual_layouts(drives_max);
        layouts.map(move |(drives, spans)| (drives, NamedLevel { is_spanned: spans > 1, ..self }, spans))
    }

    fn check(self, drives: i64, spans: i64) -> Result<(u64, u64), String> {
        let (name, rules) = (self.name(), self.in_files.level().rules());
        let (Some(counted), Some(dealt)) = (positive(drives), positive(spans)) else {
            return Err(format!("{name}: {drives} drives in {spans} spans; must be 1 or more of each"));
        };
        let (least, step) = (u64::from(rules.members_min), u64::from(rules.members_step));
        if rules.has_spans {
            if !counted.is_multiple_of(dealt) || counted / dealt < least {
                return Err(format!(
                    "{name}: {drives} drives in {spans} spans; spans must have equal numbers of drives, {least} or more"
                ));
            }
            if self.is_spanned && dealt == 1 {
                return Err(format!("{name}: 1 span; must be 2 or more"));
            }
        } else if dealt != 1 {
            return Err(format!("{name}: {spans} spans; only {} have spans", spannable()));
        } else if step > 1 && !counted.is_multiple_of(step) {
            return Err(format!("{name}: {drives} drives; must be a multiple of {step}"));
        } else if counted < least {
            return Err(format!("{name}: {drives} drives; must be {least} or more"));
        }
        Ok((counted, dealt))
    }
}

fn positive(count: i64) -> Option<u64> {
    u64::try_from(count).ok().filter(|&count| count > 0)
}

/// Returns the names of the levels that have spans, for a message: `raid5, raid6, raid50 and raid60`.
fn spannable() -> String {
    let has_spans = |level: &NamedLevel| level.in_files.level().rules().has_spans;
    let names: Vec<String> = NamedLevel::all().filter(has_spans).map(NamedLevel::name).collect();
    let (last, others) = names.split_last().expect("RAID 5 is in the list");
    format!("{} and {last}", others.join(", "))
}

/// Quotes a text for a message, on one line.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_read_by_its_name() {
        for level in NamedLevel::all() {
            assert_eq!(NamedLevel::parse(&level.name()), Ok(level));
        }
        let raid60 = NamedLevel::parse("raid60").unwrap();
        assert_eq!((raid60.in_files, raid60.choice()), (LevelName::LimitScope(Level::Raid6), None));
        let error = NamedLevel::parse("raid100").unwrap_err();
        assert_eq!(
            error,
            "level: 'raid100'; allowed: jbod, concat, raid0, raid1, raid10, raid5, raid6, raidz1, raidz2, raidz3, K+M, \
             draidP:Dd:Ss, raid50, raid60"
        );
    }

    #[test]
    fn a_choice_is_named_in_full() {
        for text in ["raid0", "concat", "4+2", "draid1:4d:0s"] {
            assert!(NamedLevel::parse_choice(text).is_ok(), "{text}");
        }
        for text in ["jbod", "raid50", "raid7", "04+2"] {
            assert!(
                NamedLevel::parse_choice(text).unwrap_err().contains("is not a candidate; allowed: raid0"),
                "{text}"
            );
        }
        for text in ["draid", "draid1:4d", "draid4:4d:1s"] {
            assert!(NamedLevel::parse_choice(text).unwrap_err().ends_with("such as draid2:8d:1s"), "{text}");
        }
    }

    #[test]
    fn numbers_that_a_level_cannot_have_are_refused() {
        for (text, drives, spans, expected) in [
            ("raid50", 8, 1, "raid50: 1 span; must be 2 or more"),
            ("raid6", 6, 2, "raid6: 6 drives in 2 spans; spans must have equal numbers of drives, 4 or more"),
            ("raid10", 8, 2, "raid10: 2 spans; only raid5, raid6, raid50 and raid60 have spans"),
            ("4+2", 8, 1, "4+2: 8 drives; must be a multiple of 6"),
            ("raidz2", 2, 1, "raidz2: 2 drives; must be 3 or more"),
            ("raid0", 0, 1, "raid0: 0 drives in 1 spans; must be 1 or more of each"),
            ("raid5", 3, -1, "raid5: 3 drives in -1 spans; must be 1 or more of each"),
        ] {
            let level = NamedLevel::parse(text).unwrap();
            assert_eq!(level.redundancy(drives, spans), Err(expected.to_owned()));
            assert_eq!(level.usable_bytes(drives, spans, 1), Err(expected.to_owned()));
        }
    }

    #[test]
    fn spans_have_a_name_of_their_own() {
        let raid6 = NamedLevel::parse("raid6").unwrap();
        let named: Vec<_> =
            raid6.usual_layouts(20).map(|(drives, level, spans)| (drives, level.name(), spans)).collect();
        assert_eq!(
            named[12..],
            [(16, "raid6".to_owned(), 1), (18, "raid60".to_owned(), 2), (20, "raid60".to_owned(), 2)]
        );
    }
}
