//! [`Level`]: RAID levels, with their names, redundancy and capacity.

use headstack_catalogue::array::level::NamedLevel;
use headstack_sim::array::levels::Choice;
use pyo3::prelude::*;

use crate::error::input_error;

/// A RAID level, by its name such as `raid5`, `4+2` or `draid2:8d:1s`; `raid50` and `raid60` are RAID 5 and 6 in two or
/// more spans. Raises `InputError` for an unknown name.
#[pyclass(frozen, module = "headstack._native")]
pub struct Level {
    of: NamedLevel,
}

/// A RAID group as sets of drives that lose data independently of each other.
#[pyclass(frozen, get_all, module = "headstack._native")]
pub struct Redundancy {
    /// Number of sets.
    groups: u64,
    /// Number of drives per set.
    members: u64,
    /// Number of arbitrary drive failures that a set survives.
    survives: u64,
    /// Number of drives per stripe, which is less than the set if stripes are declustered.
    width: u64,
    /// Distributed spare space of a set, in drives.
    spares: u64,
}

#[pymethods]
impl Redundancy {
    fn __repr__(&self) -> String {
        let Redundancy { groups, members, survives, width, spares } = self;
        format!("Redundancy(groups={groups}, members={members}, survives={survives}, width={width}, spares={spares})")
    }
}

/// Returns all levels; K+M and dRAID with one example each.
#[pyfunction]
pub fn levels() -> Vec<Level> {
    NamedLevel::all().map(|of| Level { of }).collect()
}

#[pymethods]
impl Level {
    #[new]
    fn new(name: &str) -> PyResult<Level> {
        Ok(Level { of: NamedLevel::parse(name).map_err(input_error)? })
    }

    /// Returns the level that `choose --levels` names: a level by its full name, a level with spans by its base level.
    /// Raises `InputError`.
    #[staticmethod]
    fn for_choice(name: &str) -> PyResult<Level> {
        Ok(Level { of: NamedLevel::parse_choice(name).map_err(input_error)? })
    }

    /// Name of the level.
    #[getter]
    fn name(&self) -> String {
        self.of.name()
    }

    /// Name of the level, with letters in place of counts that can be chosen: `K+M`.
    #[getter]
    fn form(&self) -> String {
        self.of.form()
    }

    /// Name in array files; for example, RAID 50 is `raid5` with spans.
    #[getter]
    fn name_in_files(&self) -> String {
        self.of.in_files.name()
    }

    /// When `choose` considers the level: by `default`, only if it is `named`, or if it is named but `unlisted` in
    /// messages. `None` for drives without a level and for levels with spans, which follow from the number of drives.
    #[getter]
    fn choice(&self) -> Option<&'static str> {
        self.of.choice().map(|choice| match choice {
            Choice::Default => "default",
            Choice::Named => "named",
            Choice::Unlisted => "unlisted",
        })
    }

    /// Minimum number of drives per span.
    #[getter]
    fn members_min(&self) -> u32 {
        self.of.in_files.level().rules().members_min
    }

    /// Maximum number of drives per group; `None` if the level has no limit.
    #[getter]
    fn members_max(&self) -> u32 {
        self.of.in_files.level().rules().members_max
    }

    /// Increment between allowed numbers of drives.
    #[getter]
    fn members_step(&self) -> u32 {
        self.of.in_files.level().rules().members_step
    }

    /// Whether the level stores records, as OpenZFS does.
    #[getter]
    fn has_records(&self) -> bool {
        self.of.in_files.level().rules().has_records
    }

    /// Whether stripes are narrower than the group and placed differently in each slice.
    #[getter]
    fn is_declustered(&self) -> bool {
        self.of.in_files.level().rules().is_declustered
    }

    /// Returns the redundancy of a group with `drives` drives in `spans` spans. Raises `InputError` for impossible
    /// numbers.
    #[pyo3(signature = (drives, spans = 1))]
    fn redundancy(&self, drives: i64, spans: i64) -> PyResult<Redundancy> {
        let found = self.of.redundancy(drives, spans).map_err(input_error)?;
        let headstack_sim::array::levels::Redundancy { groups, members, survives, width, spares } = found;
        Ok(Redundancy { groups, members, survives, width, spares })
    }

    /// Returns the exported bytes of a group with `drives` drives in `spans` spans, before rounding to whole stripes;
    /// for RAIDZ, with records of 128 KiB on sectors of 4 KiB. Raises `InputError` for impossible numbers.
    fn usable_bytes(&self, drives: i64, spans: i64, drive_bytes: u64) -> PyResult<u64> {
        self.of.usable_bytes(drives, spans, drive_bytes).map_err(input_error)
    }

    /// Returns the number of data units and of parity units in a full stripe of a span with `members` drives, and the
    /// number of copies of each unit (2 or more for mirrors); `None` if stripes vary in width, or there are none.
    fn stripe(&self, members: u64) -> Option<(u64, u64, u64)> {
        self.of.in_files.level().stripe(members).map(|stripe| (stripe.data, stripe.parity, stripe.copies))
    }

    /// Returns common layouts of the level with up to `drives_max` drives: the drives, level and spans of each.
    fn usual_layouts(&self, drives_max: i64) -> Vec<(u32, String, u32)> {
        let drives_max = u32::try_from(drives_max.max(0)).unwrap_or(u32::MAX);
        self.of.usual_layouts(drives_max).map(|(drives, level, spans)| (drives, level.name(), spans)).collect()
    }

    fn __repr__(&self) -> String {
        format!("Level('{}')", self.of.name())
    }
}
