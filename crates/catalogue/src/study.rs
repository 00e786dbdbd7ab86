//! [`Study`]: parses a `study.toml` and keeps the line of each key for errors. Python code runs the studies. See
//! docs/design/studies.md.

use std::collections::BTreeMap;

use headstack_workload::{Document, InputError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question, the runs that answer it, and published results to compare with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Title of the study.
    pub title: String,
    /// Question that the study answers.
    pub question: String,
    /// Sources of published figures.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Summary of the results in a few sentences.
    #[serde(default)]
    pub summary: String,
    /// Runs of the study.
    pub grids: Vec<Grid>,
    /// Tables of published figures for the runs of a grid.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Tables derived from other tables.
    #[serde(default)]
    pub tables: Vec<DerivedTable>,
    /// Choices that were fitted to published figures.
    #[serde(default)]
    pub chosen: Vec<FittedChoice>,
    /// Choices that the documents leave open and that this study made without fitting.
    #[serde(default)]
    pub open: Vec<Open>,
    /// Source of each tolerance, such as `15%`.
    #[serde(default)]
    pub tolerances: BTreeMap<String, String>,
    /// Published claims.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Charts.
    #[serde(default)]
    pub pictures: Vec<Picture>,
}

/// How the rows of a grid are produced.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GridKind {
    /// Runs of systems under workloads.
    #[default]
    Run,
    /// Replays of a trace that was recorded on one system.
    Replay,
    /// Predictions from low-level tests of systems.
    Predict,
}

/// A grid of runs: every system under every workload with every combination of settings.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Name of the table.
    pub name: String,
    /// How its rows are produced.
    #[serde(default)]
    pub kind: GridKind,
    /// Systems of the catalogue, their parts, or files.
    pub systems: Vec<String>,
    /// Workloads and scenarios of the catalogue, or files; empty if the settings define the load.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Options with a value, or with a list of values to sweep.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Trace to replay; only for replays.
    pub record: Option<Record>,
    /// Latency limits at which the throughput of each curve is reported.
    #[serde(default)]
    pub within: Vec<String>,
    /// Additional tables.
    #[serde(default)]
    pub keep: Vec<Keep>,
}

/// A table of a grid in addition to the table of its runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Results over time.
    Intervals,
    /// Results of the streams of scenarios.
    Streams,
    /// Values specific to a kind of stream.
    Facts,
    /// Latency percentiles.
    Percentiles,
    /// Utilization of each component.
    Components,
}

/// Runs whose requests are recorded as a trace.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// System on which the requests are recorded.
    pub system: String,
    /// Load of the recorded runs.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Options of the recorded runs.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A published table whose rows are each compared with a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// File in the folder of the study.
    pub file: String,
    /// Name of the grid with the runs.
    pub grid: String,
    /// Columns that identify the run; they have the same name in both tables.
    pub by: Vec<String>,
}

/// A table that is the result of a query on other tables.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedTable {
    /// Name of the table.
    pub name: String,
    /// Title, if the table is displayed.
    pub title: Option<String>,
    /// SQL query.
    pub sql: String,
}

/// A choice of this study that was fitted to published figures. Values of descriptions and constants are marked where
/// they are defined: their source names the claims (`S0.99`).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FittedChoice {
    /// The choice, with its value.
    pub what: String,
    /// Claims with the figures to which the choice was fitted.
    pub on: Vec<String>,
    /// Systems whose runs the choice affects; empty for all.
    #[serde(default)]
    pub systems: Vec<String>,
}

/// A choice that the documents leave open, such as the drive that replaces an unnamed one, or a client's think time.
///
/// The runs are repeated with each alternative to see which results depend on the choice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The choice, with its value.
    pub what: String,
    /// Grids that are run again.
    pub grids: Vec<String>,
    /// Alternatives to the choice.
    pub others: Vec<Alternative>,
    /// Claims that the choice may affect.
    pub on: Vec<String>,
}

/// An alternative to a choice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// Description of the alternative.
    pub what: String,
    /// Replacements for names of systems, workloads and drives.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Settings that are added to those of the grids or replace them.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A published claim and the expected result.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Short name of the claim.
    pub id: String,
    /// The claim in words.
    pub says: String,
    /// Query that returns published and simulated figures.
    pub sql: Option<String>,
    /// Tolerance of each figure, such as `5%` or an amount with its unit.
    pub tolerance: Option<String>,
    /// Reason for the tolerance, if it differs from the study's other claims.
    pub because: Option<String>,
    /// Tolerance of the mean error.
    pub mean: Option<String>,
    /// Input of the study that already states the claim, if the results only repeat it.
    pub configured: Option<String>,
    /// Reason why the published figure cannot be right.
    pub contradicted: Option<String>,
    /// Reason why the claim is not reproduced, for example missing information, or the size and cause of the
    /// difference.
    pub missing: Option<String>,
    /// A remark for readers.
    #[serde(default)]
    pub note: String,
}

/// Kind of a chart.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureKind {
    /// Line chart.
    Lines,
    /// Bar chart.
    Bars,
    /// Values by two discrete quantities.
    Grid,
    /// Heat map.
    Heat,
    /// Table of numbers and text.
    Table,
}

/// A query and the chart of its result.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// File name of the chart.
    pub name: String,
    /// Title of the chart.
    pub title: String,
    /// Kind of chart.
    pub kind: PictureKind,
    /// SQL query.
    pub sql: String,
    /// Label of the horizontal axis, with its unit.
    #[serde(default)]
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    #[serde(default)]
    pub y_label: String,
    /// Which axes are logarithmic: `x`, `y` or `xy`.
    #[serde(default)]
    pub log: String,
    /// Unit of the values in grids and heat maps.
    #[serde(default)]
    pub unit: String,
    /// Whether colours diverge from 0.
    #[serde(default)]
    pub signed: bool,
    /// Whether the horizontal axis shows percentiles in nines.
    #[serde(default)]
    pub percentiles: bool,
    /// A remark for readers.
    #[serde(default)]
    pub note: String,
}

/// An inverse study: a search for undocumented values that reproduce all figures of a document at once.
///
/// It is a study with placeholders: in systems, workloads, settings and queries, and in the files of its folder that
/// these name, `{name}` is replaced with the value of an unknown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Title of the study.
    pub title: String,
    /// Question that the study answers.
    pub question: String,
    /// Summary of the results in a few sentences.
    #[serde(default)]
    pub summary: String,
    /// Undocumented values.
    pub unknowns: Vec<Unknown>,
    /// Runs of the study, with placeholders.
    pub grids: Vec<Grid>,
    /// Tables derived from other tables.
    #[serde(default)]
    pub tables: Vec<DerivedTable>,
    /// Query for the figures, with the columns `figure`, `found`, and `published` or `low` and `high`.
    pub sql: String,
    /// Tolerance of each figure, such as `5%` or an amount with its unit.
    pub tolerance: String,
    /// Figures that are not used for fitting.
    pub held_out: Vec<String>,
}

/// An undocumented value and its possible range.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Name of the placeholder.
    pub name: String,
    /// Meaning of the value.
    pub what: String,
    /// Reason for the range: a source, or what was usual.
    pub why: String,
    /// Values that are equally likely.
    #[serde(default)]
    pub values: Vec<String>,
    /// Lowest value, if all values up to `high` are equally likely.
    pub low: Option<f64>,
    /// Highest value.
    pub high: Option<f64>,
    /// Whether all orders of magnitude between `low` and `high` are equally likely.
    #[serde(default)]
    pub log: bool,
    /// Whether only whole numbers are possible.
    #[serde(default)]
    pub whole: bool,
    /// Unit that follows the number in the placeholder, such as `ms` or `%`.
    #[serde(default)]
    pub unit: String,
}

impl Fit {
    /// Parses the `text` of an inverse study from `file`. Also returns the line of each key by its path
    /// (`unknowns[3].name`).
    ///
    /// # Errors
    /// If the text is not TOML, or a key is unknown, missing or of the wrong type.
    pub fn from_toml(file: &str, text: &str) -> Result<(Fit, BTreeMap<String, usize>), InputError> {
        let document = Document::parse(file, text)?;
        Ok((document.read()?, document.lines()))
    }
}

impl Study {
    /// Parses the `text` of a study from `file`. Also returns the line of each key by its path (`claims[3].id`).
    ///
    /// # Errors
    /// If the text is not TOML, or a key is unknown, missing or of the wrong type.
    pub fn from_toml(file: &str, text: &str) -> Result<(Study, BTreeMap<String, usize>), InputError> {
        let document = Document::parse(file, text)?;
        Ok((document.read()?, document.lines()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = \"t\"\nquestion = \"q\"\n\n[[grids]]\nname = \"g\"\nsystems = [\"a\"]\n";

    #[test]
    fn keys_have_their_lines() {
        let (study, lines) = Study::from_toml("s.toml", HEAD).unwrap();
        assert_eq!(study.grids[0].systems, ["a"]);
        assert_eq!((lines["title"], lines["grids[0].name"], lines["grids[0].systems[0]"]), (1, 5, 6));
    }

    #[test]
    fn errors_name_their_line() {
        let error = Study::from_toml("s.toml", &format!("{HEAD}setings = {{ depth = 1 }}\n")).unwrap_err().to_string();
        assert!(error.starts_with("s.toml:7: grids[0].setings: unknown key; did you mean `settings`?"), "{error}");
        let error = Study::from_toml("s.toml", &format!("{HEAD}kind = \"replays\"\n")).unwrap_err().to_string();
        assert!(error.starts_with("s.toml:7: grids[0].kind: unknown value `replays`"), "{error}");
    }
}
