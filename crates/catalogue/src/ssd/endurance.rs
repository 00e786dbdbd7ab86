//! [`EnduranceTable`]: the rated writes of an SSD.

use headstack_workload::{Document, InputError};
use serde::{Deserialize, Serialize};

/// Table `[endurance]`: the writes that the maker warrants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnduranceTable {
    /// Rated host writes (TBW), in TB of 10^12 bytes.
    pub tbw: Option<f64>,
    /// Rated drive writes per day (DWPD): capacities written per day of the warranty.
    pub dwpd: Option<f64>,
    /// Duration of the warranty, in years.
    pub warranty_years: Option<f64>,
}

impl EnduranceTable {
    /// Returns an error if a figure is not above 0.
    pub(super) fn check(&self, document: &Document) -> Result<(), InputError> {
        let figures = [
            ("endurance.tbw", self.tbw),
            ("endurance.dwpd", self.dwpd),
            ("endurance.warranty_years", self.warranty_years),
        ];
        match figures.iter().find_map(|&(key, figure)| Some((key, figure.filter(|&it| !(it.is_finite() && it > 0.0))?)))
        {
            Some((key, figure)) => Err(document.error(key, format!("{figure} is not allowed; must be above 0"))),
            None => Ok(()),
        }
    }
}
