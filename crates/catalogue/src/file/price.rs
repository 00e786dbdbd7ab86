//! [`PriceTable`]: the price table of a drive file.

use headstack_workload::{Document, InputError};
use serde::{Deserialize, Serialize};

/// Table `[price]`: the price of one drive. The date is required because flash prices may double within a year.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// Price in US dollars.
    pub usd: f64,
    /// Date in the form `2019`, `2019-06` or `2019-06-04`.
    pub date: String,
}

impl PriceTable {
    /// Checks the price and the form of the date.
    pub(crate) fn check(&self, document: &Document) -> Result<(), InputError> {
        if !(self.usd.is_finite() && self.usd > 0.0) {
            return Err(document.error("price.usd", format!("{} is not allowed; the price must be above 0", self.usd)));
        }
        let parts: Vec<&str> = self.date.split('-').collect();
        let is_number = |part: &str, length, highest| {
            part.len() == length && part.parse::<u32>().is_ok_and(|number| (1..=highest).contains(&number))
        };
        let fits = is_number(parts[0], 4, 9999)
            && parts.len() <= 3
            && parts.get(1).is_none_or(|month| is_number(month, 2, 12))
            && parts.get(2).is_none_or(|day| is_number(day, 2, 31));
        if !fits {
            let message = format!("{:?} is not a date; use a year, month or day, for example \"2019-06\"", self.date);
            return Err(document.error("price.date", message));
        }
        Ok(())
    }
}
