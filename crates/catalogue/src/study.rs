//! Studies: what a `study.toml` says, read with the line of whatever is wrong. Carrying it out is not done here.

use std::collections::BTreeMap;

use headstack_workload::{Document, InputError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question, the runs that answer it, and what others published about it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// A heading.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// Where published figures come from.
    #[serde(default)]
    pub sources: Vec<String>,
    /// What came out, in some sentences.
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
    /// What was chosen with published figures in view.
    #[serde(default)]
    pub chosen: Vec<Chosen>,
    /// What the documents leave open, and this study chose without a figure in view.
    #[serde(default)]
    pub open: Vec<Open>,
    /// Where tolerances come from, by tolerance: `15%`.
    #[serde(default)]
    pub tolerances: BTreeMap<String, String>,
    /// What was published.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What is drawn.
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
    /// Workloads and scenarios, likewise; none where the settings say what is asked.
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

/// A table of a grid beside that of its runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Figures over time.
    Intervals,
    /// The streams of scenarios.
    Streams,
    /// What streams count of their own.
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
    /// What it is put under.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Options of runs.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A published table, each row of which is held against a run.
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
    /// A heading, where it is to be shown.
    pub title: Option<String>,
    /// The query.
    pub sql: String,
}

/// A choice of this study that was made with published figures in view. Values of descriptions and constants say so
/// themselves: where they are from names the claims (`S0.99`).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// What, with its value.
    pub what: String,
    /// Claims whose figures it was chosen for, or with these in view.
    pub on: Vec<String>,
    /// Systems whose runs it is in; all of them where none is named.
    #[serde(default)]
    pub systems: Vec<String>,
}

/// A choice that the documents leave open: which drive stands in for one that is not named, how long a client thinks.
///
/// Runs are carried out once more with each of the others in its place, to see what hangs on it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// What is chosen, with the value.
    pub what: String,
    /// The grids that are carried out again.
    pub grids: Vec<String>,
    /// What may as well be so.
    pub others: Vec<Other>,
    /// Claims that it may be of importance to.
    pub on: Vec<String>,
}

/// What may as well stand in the place of a choice.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// In words.
    pub what: String,
    /// Names of systems, workloads and drives as they were chosen, with those that take their place.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Settings that are added to the grids', or take their place.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// Something published, and what is expected of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// The claim in words.
    pub says: String,
    /// A query for published figures beside those found.
    pub sql: Option<String>,
    /// How far each may be apart: `5%`, or an amount with its unit.
    pub tolerance: Option<String>,
    /// Where the tolerance comes from, where it is not as other claims' of the study.
    pub because: Option<String>,
    /// How far they may be apart on average.
    pub mean: Option<String>,
    /// Which input of ours states it, where results of runs only repeat that.
    pub configured: Option<String>,
    /// Why what was published cannot be right.
    pub contradicted: Option<String>,
    /// What is missing to reproduce it, or by how much it is missed and why.
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
    /// How much there is at each place.
    Heat,
    /// Rows of figures and words.
    Table,
}

/// A query and how it is drawn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Name of the file.
    pub name: String,
    /// A heading.
    pub title: String,
    /// How it is drawn.
    pub kind: PictureKind,
    /// The query.
    pub sql: String,
    /// What the horizontal axis shows, with its unit.
    #[serde(default)]
    pub x_label: String,
    /// What the vertical axis shows, with its unit.
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

/// An inverse study: which settings of what a document leaves unsaid give all of its figures at once?
///
/// It is a study with blanks: in systems, workloads, settings and queries, and in files of its folder that these name,
/// `{name}` stands for the value of an unknown.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// A heading.
    pub title: String,
    /// What is asked.
    pub question: String,
    /// What came out, in some sentences.
    #[serde(default)]
    pub summary: String,
    /// What is not told.
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

/// Something that a document leaves unsaid, and what it may be.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    /// Its blank.
    pub name: String,
    /// What it is.
    pub what: String,
    /// Why it may be that: a source, or what was usual.
    pub why: String,
    /// Values of which each is as likely.
    #[serde(default)]
    pub values: Vec<String>,
    /// The lowest value, where all between two are as likely.
    pub low: Option<f64>,
    /// The highest.
    pub high: Option<f64>,
    /// All orders of magnitude between the two are as likely.
    #[serde(default)]
    pub log: bool,
    /// Whole numbers alone.
    #[serde(default)]
    pub whole: bool,
    /// What follows the number in its blank: `ms`, `%`.
    #[serde(default)]
    pub unit: String,
}

impl Fit {
    /// Reads the `text` of an inverse study, as `Study::from_toml` does.
    ///
    /// # Errors
    /// When it is not TOML, or a key is unknown, missing or of the wrong type.
    pub fn from_toml(file: &str, text: &str) -> Result<(Fit, BTreeMap<String, usize>), InputError> {
        let document = Document::parse(file, text)?;
        Ok((document.read()?, document.lines()))
    }
}

impl Study {
    /// Reads the `text` of a study that came from `file`; also the line of each key, by its path (`claims[3].id`).
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
