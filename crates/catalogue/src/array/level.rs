//! [`NamedLevel`]: RAID levels by the names that users give them, with the failures that groups of each survive and the
//! capacity that they export.

use headstack_sim::array::levels::{Choice, Redundancy};
use headstack_sim::description::level::Level;

use super::file::LevelName;

/// A RAID level by name: a level of array files, or RAID 50 or 60, which are spans of RAID 5 or 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLevel {
    /// The level in array files.
    pub in_files: LevelName,
    /// Whether it is named after its spans, as `raid50`, which has two or more.
    is_spanned: bool,
}

impl NamedLevel {
    /// Returns all levels; K+M and dRAID by an example each.
    pub fn all() -> impl Iterator<Item = NamedLevel> {
        let of_files = std::iter::once(LevelName::Jbod).chain(Level::ALL.iter().copied().map(LevelName::LimitScope));
        let spanned = Level::ALL.iter().filter(|level| level.rules().has_spans);
        let spanned = spanned.map(|&level| NamedLevel { in_files: LevelName::LimitScope(level), is_spanned: true });
        of_files.map(|in_files| NamedLevel { in_files, is_spanned: false }).chain(spanned)
    }

    /// Parses the name of a level.
    ///
    /// # Errors
    /// For an unknown name; the message lists the allowed ones.
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

    /// Parses the name of a level for `choose --levels`: in full, spans by the level of each span.
    ///
    /// # Errors
    /// For a name that a choice of systems does not support; the message lists the allowed ones.
    pub fn parse_choice(text: &str) -> Result<NamedLevel, String> {
        if let Ok(level) = NamedLevel::parse(text)
            && level.choice().is_some()
            && level.name() == text
        {
            return Ok(level);
        }
        let named = quoted(text);
        Err(if text.starts_with("draid") {
            format!("levels: {named} is incomplete or not supported; write it as in draid2:8d:1s")
        } else {
            format!("levels: {named} is not a candidate; allowed: {}", Level::CHOICES)
        })
    }

    /// Returns its name: `raid5`, `4+2`, `raid60`.
    pub fn name(self) -> String {
        self.with_spans(self.in_files.name())
    }

    /// Returns its name, with letters in place of counts that can be chosen: `K+M`.
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

    /// Returns whether a choice of systems considers it; `None` for drives without a level, and for spans, which follow
    /// from the number of drives.
    pub fn choice(self) -> Option<Choice> {
        match self.in_files {
            LevelName::LimitScope(level) if !self.is_spanned => Some(level.rules().choice),
            LevelName::LimitScope(_) | LevelName::Jbod => None,
        }
    }

    /// Returns how many failures a group of these numbers of drives and spans survives.
    ///
    /// # Errors
    /// For impossible numbers.
    pub fn redundancy(self, drives: i64, spans: i64) -> Result<Redundancy, String> {
        let (drives, spans) = self.check(drives, spans)?;
        Ok(self.in_files.level().redundancy(drives, spans))
    }

    /// Returns the bytes that a group of these numbers of drives and spans exports, ignoring rounding to whole stripes.
    ///
    /// # Errors
    /// For impossible numbers.
    pub fn usable_bytes(self, drives: i64, spans: i64, drive_bytes: u64) -> Result<u64, String> {
        let (drives, spans) = self.check(drives, spans)?;
        Ok(self.in_files.level().usable_bytes(drives, spans, drive_bytes))
    }

    /// Returns its groups that are usually built, up to `drives_max` drives: drives, level and spans of each.
    pub fn usual_layouts(self, drives_max: u32) -> impl Iterator<Item = (u32, NamedLevel, u32)> {
        let layouts = self.in_files.level().usual_layouts(drives_max);
        layouts.map(move |(drives, spans)| (drives, NamedLevel { is_spanned: spans > 1, ..self }, spans))
    }

    fn check(self, drives: i64, spans: i64) -> Result<(u64, u64), String> {
        let (name, rules) = (self.name(), self.in_files.level().rules());
        let (Some(counted), Some(dealt)) = (positive(drives), positive(spans)) else {
            return Err(format!("{name}: {drives} drives in {spans} spans; 1 or more of each is allowed"));
        };
        let (least, step) = (u64::from(rules.members_min), u64::from(rules.members_step));
        if rules.has_spans {
            if !counted.is_multiple_of(dealt) || counted / dealt < least {
                return Err(format!(
                    "{name}: {drives} drives in {spans} spans; spans have equally many drives, {least} or more"
                ));
            }
            if self.is_spanned && dealt == 1 {
                return Err(format!("{name}: 1 span; 2 or more"));
            }
        } else if dealt != 1 {
            return Err(format!("{name}: {spans} spans; only {} have spans", spannable()));
        } else if step > 1 && !counted.is_multiple_of(step) {
            return Err(format!("{name}: {drives} drives; a multiple of {step} is allowed"));
        } else if counted < least {
            return Err(format!("{name}: {drives} drives; {least} or more are allowed"));
        }
        Ok((counted, dealt))
    }
}

fn positive(count: i64) -> Option<u64> {
    u64::try_from(count).ok().filter(|&count| count > 0)
}

/// Returns the levels that have spans, for a message: `raid5, raid6, raid50 and raid60`.
fn spannable() -> String {
    let has_spans = |level: &NamedLevel| level.in_files.level().rules().has_spans;
    let names: Vec<String> = NamedLevel::all().filter(has_spans).map(NamedLevel::name).collect();
    let (last, others) = names.split_last().expect("RAID 5 has spans");
    format!("{} and {last}", others.join(", "))
}

/// Returns a text as messages quote it: on one line.
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
            assert!(NamedLevel::parse_choice(text).unwrap_err().ends_with("as in draid2:8d:1s"), "{text}");
        }
    }

    #[test]
    fn numbers_that_a_level_cannot_have_are_refused() {
        for (text, drives, spans, expected) in [
            ("raid50", 8, 1, "raid50: 1 span; 2 or more"),
            ("raid6", 6, 2, "raid6: 6 drives in 2 spans; spans have equally many drives, 4 or more"),
            ("raid10", 8, 2, "raid10: 2 spans; only raid5, raid6, raid50 and raid60 have spans"),
            ("4+2", 8, 1, "4+2: 8 drives; a multiple of 6 is allowed"),
            ("raidz2", 2, 1, "raidz2: 2 drives; 3 or more are allowed"),
            ("raid0", 0, 1, "raid0: 0 drives in 1 spans; 1 or more of each is allowed"),
            ("raid5", 3, -1, "raid5: 3 drives in -1 spans; 1 or more of each is allowed"),
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
