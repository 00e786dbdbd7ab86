//! [`Study`]: the contents of a `study.toml`, read with the line of each error. Executing it is not part of this crate.

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
    /// The result, in some sentences.
    #[serde(default)]
    pub summary: String,
    /// The runs.
    pub grids: Vec<Grid>,
    /// Tables of figures that belong to the runs of a grid.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Tables that are derived from others.
    #[serde(default)]
    pub tables: Vec<DerivedTable>,
    /// Choices that were fitted to published figures.
    #[serde(default)]
    pub chosen: Vec<Chosen>,
    /// Choices that the documents leave open and this study made without fitting a figure.
    #[serde(default)]
    pub open: Vec<Open>,
    /// Sources of tolerances, by tolerance: `15%`.
    #[serde(default)]
    pub tolerances: BTreeMap<String, String>,
    /// Published claims.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Pictures.
    #[serde(default)]
    pub pictures: Vec<Picture>,
}

/// How the rows of a grid come about.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GridKind {
    /// Runs of systems under workloads.
    #[default]
    Run,
    /// Replays of requests that were recorded on one system.
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
    /// How its rows come about.
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
    /// Response times at which the throughput of each curve is wanted.
    #[serde(default)]
    pub within: Vec<String>,
    /// Further tables.
    #[serde(default)]
    pub keep: Vec<Keep>,
}

/// An additional table of a grid.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Figures over time.
    Intervals,
    /// The streams of scenarios.
    Streams,
    /// Stream-specific figures.
    Facts,
    /// Percentiles of response times.
    Percentiles,
    /// How busy each component is.
    Components,
}

/// Runs whose requests are recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// On which they are recorded.
    pub system: String,
    /// The loads.
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
    /// In the folder of the study.
    pub file: String,
    /// Whose runs they are.
    pub grid: String,
    /// The columns that tell which run, of the same name in both.
    pub by: Vec<String>,
}

/// A query over other tables.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedTable {
    /// Name of the table.
    pub name: String,
    /// A heading, if shown.
    pub title: Option<String>,
    /// The query.
    pub sql: String,
}

/// A choice of this study that was fitted to published figures. Values of descriptions and constants state this
/// themselves: their sources name the claims (`S0.99`).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The choice, with its value.
    pub what: String,
    /// Claims to whose figures it was fitted.
    pub on: Vec<String>,
    /// Systems whose runs it affects; all of them if none is named.
    #[serde(default)]
    pub systems: Vec<String>,
}

/// A choice that the documents leave open: which drive replaces an unnamed one, how long a client thinks.
///
/// Runs are repeated with each of the alternatives, to see their effect.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The choice, with its value.
    pub what: String,
    /// The grids that are repeated.
    pub grids: Vec<String>,
    /// The alternatives.
    pub others: Vec<Other>,
    /// Claims that it may be of importance to.
    pub on: Vec<String>,
}

/// An alternative to a choice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// In words.
    pub what: String,
    /// Names of systems, workloads and drives as chosen, with their replacements.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Settings that are added to the grids', or take their place.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A published claim, and the expectation about it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// The claim in words.
    pub says: String,
    /// A query for further published figures.
    pub sql: Option<String>,
    /// How far each may be apart: `5%`, or an amount with its unit.
    pub tolerance: Option<String>,
    /// Source of the tolerance, if it differs from other claims' of the study.
    pub because: Option<String>,
    /// How far they may be apart on average.
    pub mean: Option<String>,
    /// Our input that states it, if results of runs only repeat that.
    pub configured: Option<String>,
    /// Why the published figure cannot be right.
    pub contradicted: Option<String>,
    /// What is missing to reproduce it, or the size and the reason of the deviation.
    pub missing: Option<String>,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// How a picture is drawn.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureKind {
    /// Figures over another.
    Lines,
    /// Figures side by side.
    Bars,
    /// Figures over two things that come in steps.
    Grid,
    /// Density at each place.
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
    /// Kind of picture.
    pub kind: PictureKind,
    /// The query.
    pub sql: String,
    /// Label of the horizontal axis, with its unit.
    #[serde(default)]
    pub x_label: String,
    /// Label of the vertical axis, with its unit.
    #[serde(default)]
    pub y_label: String,
    /// Logarithmic axes: `x`, `y` or `xy`.
    #[serde(default)]
    pub log: String,
    /// Unit of the values of grids and heat maps.
    #[serde(default)]
    pub unit: String,
    /// Coloured from a middle at 0.
    #[serde(default)]
    pub signed: bool,
    /// The horizontal axis runs over percentiles in nines.
    #[serde(default)]
    pub percentiles: bool,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// An inverse study: which values of a document's unknowns yield all of its figures at once?
///
/// It is a study with placeholders: in systems, workloads, settings and queries, and in files of its folder that these
/// name, `{name}` is replaced by the value of an unknown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// A heading.
    pub title: String,
    /// The question.
    pub question: String,
    /// The result, in some sentences.
    #[serde(default)]
    pub summary: String,
    /// The unknowns.
    pub unknowns: Vec<Unknown>,
    /// The runs, with blanks.
    pub grids: Vec<Grid>,
    /// Tables that are derived from others.
    #[serde(default)]
    pub tables: Vec<DerivedTable>,
    /// A query for the figures: `figure`, `found`, and `published` or `low` and `high`.
    pub sql: String,
    /// How far each may be apart: `5%`, or an amount with its unit.
    pub tolerance: String,
    /// Figures that settings are not chosen by.
    pub held_out: Vec<String>,
}

/// An unknown of a document, with its possible values.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Its blank.
    pub name: String,
    /// Description.
    pub what: String,
    /// Reason for the possible values: a source, or common practice.
    pub why: String,
    /// Equally likely values.
    #[serde(default)]
    pub values: Vec<String>,
    /// Lowest value, if all between two are equally likely.
    pub low: Option<f64>,
    /// The highest.
    pub high: Option<f64>,
    /// All orders of magnitude between the two are as likely.
    #[serde(default)]
    pub log: bool,
    /// Whether only whole numbers are possible.
    #[serde(default)]
    pub whole: bool,
    /// Suffix of the number in its placeholder: `ms`, `%`.
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
    /// Parses the `text` of a study from `file`; also returns the line of each key, by its path (`claims[3].id`).
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
    fn what_is_wrong_is_named_with_its_line() {
        let error = Study::from_toml("s.toml", &format!("{HEAD}setings = {{ depth = 1 }}\n")).unwrap_err().to_string();
        assert!(error.starts_with("s.toml:7: grids[0].setings: unknown key; did you mean `settings`?"), "{error}");
        let error = Study::from_toml("s.toml", &format!("{HEAD}kind = \"replays\"\n")).unwrap_err().to_string();
        assert!(error.starts_with("s.toml:7: grids[0].kind: unknown value `replays`"), "{error}");
    }
}
