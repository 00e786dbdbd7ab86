//! [`Study`]: parses a `study.toml`, with the line of each error. Studies are run elsewhere. See
//! docs/design/studies.md.

use std::collections::BTreeMap;

use headstack_workload::{Document, InputError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question, the runs that answer it, and published results about it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// A heading.
    pub title: String,
    /// The question.
    pub question: String,
    /// Sources of published figures.
    #[serde(default)]
    pub sources: Vec<String>,
    /// The results, in some sentences.
    #[serde(default)]
    pub summary: String,
    /// The runs.
    pub grids: Vec<Grid>,
    /// Tables of published figures for the runs of a grid.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Tables that are derived from others.
    #[serde(default)]
    pub tables: Vec<DerivedTable>,
    /// Values that were fitted to published figures.
    #[serde(default)]
    pub chosen: Vec<FittedChoice>,
    /// Values that the documents leave open, and that this study chose without fitting.
    #[serde(default)]
    pub open: Vec<Open>,
    /// Sources of tolerances, by tolerance: `15%`.
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
    /// Predictions from the low-level tests of systems.
    Predict,
}

/// Every system under every workload and combination of settings.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Name of the table.
    pub name: String,
    /// How its rows are produced.
    #[serde(default)]
    pub kind: GridKind,
    /// Systems of the catalogue, parts of them, or files.
    pub systems: Vec<String>,
    /// Workloads and scenarios, likewise; empty if the settings define the load.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Options with a value, or a list of values that are swept.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// The trace to replay; for replays only.
    pub record: Option<Record>,
    /// Latencies at which the throughput of each curve is reported.
    #[serde(default)]
    pub within: Vec<String>,
    /// Further tables.
    #[serde(default)]
    pub keep: Vec<Keep>,
}

/// A table of a grid in addition to that of its runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Figures over time.
    Intervals,
    /// The streams of scenarios.
    Streams,
    /// Values specific to streams.
    Facts,
    /// Percentiles of latencies.
    Percentiles,
    /// Utilization of each component.
    Components,
}

/// Runs whose requests are recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The system on which they are recorded.
    pub system: String,
    /// The load on it.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Options of runs.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A published table, each row of which is compared with a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// File in the folder of the study.
    pub file: String,
    /// Grid of the runs.
    pub grid: String,
    /// Columns that identify the run, with the same name in both.
    pub by: Vec<String>,
}

/// A query over other tables.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedTable {
    /// Name of the table.
    pub name: String,
    /// A heading, if it is to be displayed.
    pub title: Option<String>,
    /// The query.
    pub sql: String,
}

/// A choice of this study that was fitted to published figures. Values of descriptions and constants are marked
/// themselves: their source names the claims (`S0.99`).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FittedChoice {
    /// The choice, with its value.
    pub what: String,
    /// Claims to whose figures it was fitted.
    pub on: Vec<String>,
    /// Systems whose runs it affects; all if none is named.
    #[serde(default)]
    pub systems: Vec<String>,
}

/// A choice that the documents leave open: the drive that replaces an unnamed one, a client's think time.
///
/// The runs are repeated with each of the alternatives, to see what depends on it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The choice, with its value.
    pub what: String,
    /// The grids that are run again.
    pub grids: Vec<String>,
    /// Alternatives.
    pub others: Vec<Alternative>,
    /// Claims that it may affect.
    pub on: Vec<String>,
}

/// An alternative to a choice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The alternative in words.
    pub what: String,
    /// Chosen names of systems, workloads and drives, with those that replace them.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Settings that are added to the grids', or replace them.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A published claim, and what is expected of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// The claim in words.
    pub says: String,
    /// A query that returns published figures and results.
    pub sql: Option<String>,
    /// Tolerance of each: `5%`, or an amount with its unit.
    pub tolerance: Option<String>,
    /// Source of the tolerance, if it differs from the study's other claims.
    pub because: Option<String>,
    /// Tolerance of their mean.
    pub mean: Option<String>,
    /// Input of ours that states it, if results of runs only repeat that.
    pub configured: Option<String>,
    /// Why the published figure cannot be right.
    pub contradicted: Option<String>,
    /// Reason why it is not reproduced: missing information, or by how much it is missed and why.
    pub missing: Option<String>,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// Kind of a chart.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureKind {
    /// Lines over another quantity.
    Lines,
    /// Bars next to each other.
    Bars,
    /// Values over two discrete quantities.
    Grid,
    /// Heat map.
    Heat,
    /// Rows of figures and words.
    Table,
}

/// A query and its picture.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Name of the file.
    pub name: String,
    /// A heading.
    pub title: String,
    /// Kind of chart.
    pub kind: PictureKind,
    /// The query.
    pub sql: String,
    /// Quantity of the horizontal axis, with its unit.
    #[serde(default)]
    pub x_label: String,
    /// Quantity of the vertical axis, with its unit.
    #[serde(default)]
    pub y_label: String,
    /// Logarithmic axes: `x`, `y` or `xy`.
    #[serde(default)]
    pub log: String,
    /// Unit of the values of grids and heat maps.
    #[serde(default)]
    pub unit: String,
    /// Whether colours diverge from 0.
    #[serde(default)]
    pub signed: bool,
    /// Whether the horizontal axis shows percentiles in nines.
    #[serde(default)]
    pub percentiles: bool,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// An inverse study: it searches for settings of undocumented values that reproduce all of a document's figures at
/// once.
///
/// It is a study with blanks: in systems, workloads, settings and queries, and in files of its folder that these name,
/// `{name}` is replaced by the value of an unknown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// A heading.
    pub title: String,
    /// The question.
    pub question: String,
    /// The results, in some sentences.
    #[serde(default)]
    pub summary: String,
    /// Undocumented values.
    pub unknowns: Vec<Unknown>,
    /// The runs, with blanks.
    pub grids: Vec<Grid>,
    /// Tables that are derived from others.
    #[serde(default)]
    pub tables: Vec<DerivedTable>,
    /// A query for the figures: `figure`, `found`, and `published` or `low` and `high`.
    pub sql: String,
    /// Tolerance of each: `5%`, or an amount with its unit.
    pub tolerance: String,
    /// Figures that are held out from fitting.
    pub held_out: Vec<String>,
}

/// An undocumented value, and its possible range.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Name of its blank.
    pub name: String,
    /// Its meaning.
    pub what: String,
    /// Why it may have these values: a source, or what was usual.
    pub why: String,
    /// Equally likely values.
    #[serde(default)]
    pub values: Vec<String>,
    /// The lowest value, if all between two are equally likely.
    pub low: Option<f64>,
    /// The highest value.
    pub high: Option<f64>,
    /// Whether all orders of magnitude between the two are equally likely.
    #[serde(default)]
    pub log: bool,
    /// Whether only whole numbers are allowed.
    #[serde(default)]
    pub whole: bool,
    /// Unit after the number in its blank: `ms`, `%`.
    #[serde(default)]
    pub unit: String,
}

impl Fit {
    /// Parses the `text` of an inverse study, as `Study::from_toml` does.
    ///
    /// # Errors
    /// When it is not TOML, or a key is unknown, missing or of the wrong type.
    pub fn from_toml(file: &str, text: &str) -> Result<(Fit, BTreeMap<String, usize>), InputError> {
        let document = Document::parse(file, text)?;
        Ok((document.read()?, document.lines()))
    }
}

impl Study {
    /// Parses the `text` of a study that came from `file`; returns also the line of each key, by its path
    /// (`claims[3].id`).
    ///
    /// # Errors
    /// When it is not TOML, or a key is unknown, missing or of the wrong type.
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
