//! RAID levels: what they are called, and what groups of each survive and export.

use headstack_catalogue::array::level::NamedLevel;
use headstack_sim::array::levels::Choice;
use pyo3::prelude::*;

use crate::error::input_error;

/// A RAID level by its name: `raid5`, `4+2`, `draid2:8d:1s`; `raid50` and `raid60` are RAID 5 and 6 in two spans or more. Raises
/// `InputError` for an unknown name.
#[pyclass(frozen, module = "headstack._native")]
pub struct Level {
    of: NamedLevel,
}

/// A group as sets of drives that lose data independently of each other.
#[pyclass(frozen, get_all, module = "headstack._native")]
pub struct Redundancy {
    /// Sets.
    groups: u64,
    /// Drives of each set.
    members: u64,
    /// Failed drives of one set that it survives, whichever they are.
    survives: u64,
    /// Drives that hold a stripe: fewer than those of the set where stripes are declustered.
    width: u64,
    /// Drives' worth of spare space that is distributed over the set.
    spares: u64,
}

#[pymethods]
impl Redundancy {
    fn __repr__(&self) -> String {
        let Redundancy { groups, members, survives, width, spares } = self;
        format!("Redundancy(groups={groups}, members={members}, survives={survives}, width={width}, spares={spares})")
    }
}

/// Every level; K+M and dRAID by an example each.
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

    /// The level that `choose --levels` names: in full, spans by the level that they are of. Raises `InputError`.
    #[staticmethod]
    fn for_choice(name: &str) -> PyResult<Level> {
        Ok(Level { of: NamedLevel::parse_choice(name).map_err(input_error)? })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.of.name()
    }

    /// Its name, with letters in place of counts that can be chosen: `K+M`.
    #[getter]
    fn form(&self) -> String {
        self.of.form()
    }

    /// Its name in array files: RAID 50 is `raid5` there, in spans.
    #[getter]
    fn name_in_files(&self) -> String {
        self.of.in_files.name()
    }

    /// When `choose` considers it: by `default`, where it is `named`, or named but `unlisted` in messages; `None` of drives
    /// without a level and of spans, which follow from the number of drives.
    #[getter]
    fn choice(&self) -> Option<&'static str> {
        self.of.choice().map(|choice| match choice {
            Choice::Default => "default",
            Choice::Named => "named",
            Choice::Unlisted => "unlisted",
        })
    }

    /// The fewest drives of a span.
    #[getter]
    fn members_min(&self) -> u32 {
        self.of.in_files.level().rules().members_min
    }

    /// The most drives of a group, as far as the level limits them.
    #[getter]
    fn members_max(&self) -> u32 {
        self.of.in_files.level().rules().members_max
    }

    /// Drives come in multiples of this.
    #[getter]
    fn members_step(&self) -> u32 {
        self.of.in_files.level().rules().members_step
    }

    /// It keeps records, as OpenZFS does.
    #[getter]
    fn has_records(&self) -> bool {
        self.of.in_files.level().rules().has_records
    }

    /// Its stripes are narrower than the group and lie elsewhere in each slice.
    #[getter]
    fn is_declustered(&self) -> bool {
        self.of.in_files.level().rules().is_declustered
    }

    /// How many failures a group of so many drives and spans survives. Raises `InputError` for numbers that it cannot have.
    #[pyo3(signature = (drives, spans = 1))]
    fn redundancy(&self, drives: i64, spans: i64) -> PyResult<Redundancy> {
        let found = self.of.redundancy(drives, spans).map_err(input_error)?;
        let headstack_sim::array::levels::Redundancy { groups, members, survives, width, spares } = found;
        Ok(Redundancy { groups, members, survives, width, spares })
    }

    /// Bytes that a group of so many drives and spans exports, but for roundings to whole stripes; RAIDZ by records of 128 KiB in
    /// sectors of 4 KiB. Raises `InputError` for numbers that it cannot have.
    fn usable_bytes(&self, drives: i64, spans: i64, drive_bytes: u64) -> PyResult<u64> {
        self.of.usable_bytes(drives, spans, drive_bytes).map_err(input_error)
    }

    /// Units of data and of parity in a full stripe of a span of so many drives, and copies of each: 2 or more where it mirrors;
    /// `None` where stripes vary in width, or there are none.
    fn stripe(&self, members: u64) -> Option<(u64, u64, u64)> {
        self.of.in_files.level().stripe(members).map(|stripe| (stripe.data, stripe.parity, stripe.copies))
    }

    /// The groups of it that are usually built, up to so many drives: drives, level and spans of each.
    fn usual_layouts(&self, drives_max: i64) -> Vec<(u32, String, u32)> {
        let drives_max = u32::try_from(drives_max.max(0)).unwrap_or(u32::MAX);
        self.of.usual_layouts(drives_max).map(|(drives, level, spans)| (drives, level.name(), spans)).collect()
    }

    fn __repr__(&self) -> String {
        format!("Level('{}')", self.of.name())
    }
}
