//! [`Points`] of a sweep. A point consists of the files of a system and a workload with some changed values, and some
//! options.

use std::collections::{BTreeMap, HashMap};

use headstack_sim::faults::Schedule;
use headstack_sim::{Demand, SystemDescription, contained};
use headstack_workload::{InputError, Span, Workload};
use serde::Deserialize;

use crate::options::{Draft, uniform_workload};
use crate::{Blueprint, Described, Drafter};

/// Prefix of the columns of varied fields, whose names may equal those of result columns.
const MARK: &str = "=";

/// The points of one system under one workload in a sweep. Other fields of the sweep's request are ignored.
#[derive(Debug, Deserialize)]
pub struct Points {
    system: SystemRequest,
    /// Load; `None` if options define it.
    demand: Option<DemandRequest>,
    /// Varied fields.
    fields: Vec<String>,
    /// Kind of each field.
    kinds: Vec<FieldKind>,
    /// Column of each field in the result table.
    columns: Vec<String>,
    /// Common unit of all values of each field, shown in the column name.
    units: Vec<Option<String>>,
    /// Points, each with a value for every field.
    points: Vec<Vec<String>>,
    /// Fault schedules by the value of the option. Their files need not exist on the machine that runs a point.
    #[serde(default)]
    faults: BTreeMap<String, Schedule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemRequest {
    name: String,
    /// Part of the system that is used, as a range.
    part: Option<String>,
    blueprint: Blueprint,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DemandRequest {
    blueprint: Blueprint,
}

/// Kind of a varied field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FieldKind {
    /// A key of the system's file, or a change to an array.
    System,
    /// A key of the workload's file.
    Demand,
    /// An option of the run.
    Option,
}

/// A point that is ready to run.
#[derive(Debug)]
pub struct Point {
    /// Labels that distinguish the point from others, as (column, value).
    pub labels: Vec<(String, String)>,
    /// The run of the point.
    pub draft: Result<Draft, Refused>,
}

/// Reason why a point cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The description of the point is impossible.
    Impossible(String),
    /// An internal error occurred while the point was described.
    Failed(String),
}

impl From<InputError> for Refused {
    fn from(error: InputError) -> Refused {
        Refused::Impossible(error.to_string())
    }
}

/// Descriptions by the values from which they are derived.
type ByValues<'p, T> = HashMap<Vec<&'p str>, Result<T, Refused>>;

/// Points with their systems and loads. Points with the same values share a description.
#[derive(Debug)]
pub struct DescribedPoints<'p> {
    asked: &'p Points,
    systems: ByValues<'p, SystemDescription>,
    demands: ByValues<'p, Demand>,
}

impl Points {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Derives the systems and loads of the points.
    ///
    /// # Errors
    /// If a blueprint is invalid.
    pub fn describe(&self) -> Result<DescribedPoints<'_>, InputError> {
        let system = |described| match described {
            Described::System(system) => system,
            Described::Demand(_) => unreachable!("a system's blueprint describes a system"),
        };
        let demand = |described| match described {
            Described::Demand(demand) => demand,
            Described::System(_) => unreachable!("a demand's blueprint describes a demand"),
        };
        Ok(DescribedPoints {
            asked: self,
            systems: self.described(FieldKind::System, &self.system.blueprint, system)?,
            demands: match &self.demand {
                Some(asked) => self.described(FieldKind::Demand, &asked.blueprint, demand)?,
                None => HashMap::new(),
            },
        })
    }

    fn described<T>(
        &self,
        kind: FieldKind,
        blueprint: &Blueprint,
        only: impl Fn(Described) -> T,
    ) -> Result<ByValues<'_, T>, InputError> {
        let drafter = Drafter::new(blueprint.clone())?;
        let mut found = HashMap::new();
        for point in &self.points {
            found.entry(self.of_kind(kind, point)).or_insert_with_key(|values| {
                let fields = self.fields.iter().zip(&self.kinds).filter(|&(_, &of)| of == kind).map(|(field, _)| field);
                let stated: Vec<_> =
                    fields.zip(values).map(|(field, &value)| (field.clone(), value.to_owned())).collect();
                match contained(|| drafter.with(&stated)) {
                    Ok(described) => Ok(only(described?)),
                    Err(panic) => Err(Refused::Failed(panic)),
                }
            });
        }
        Ok(found)
    }

    /// Returns the values of a point's fields of the given kind.
    fn of_kind<'p>(&self, kind: FieldKind, point: &'p [String]) -> Vec<&'p str> {
        self.kinds.iter().zip(point).filter(|&(&of, _)| of == kind).map(|(_, value)| value.as_str()).collect()
    }

    fn option<'p>(&self, name: &str, point: &'p [String]) -> Option<&'p str> {
        let at =
            self.fields.iter().zip(&self.kinds).position(|(field, &kind)| kind == FieldKind::Option && field == name);
        at.map(|at| point[at].as_str())
    }

    fn system_name(&self) -> String {
        match &self.system.part {
            Some(part) => format!("{}@{part}", self.system.name),
            None => self.system.name.clone(),
        }
    }

    /// Returns the workload defined by the options `size`, `read` and `random`.
    fn one_size(&self, point: &[String]) -> Result<Workload, InputError> {
        let chosen = |name, usual| self.option(name, point).unwrap_or(usual);
        uniform_workload(chosen("size", "4KiB"), chosen("read", "100"), chosen("random", "100"))
    }
}

impl DescribedPoints<'_> {
    /// Returns a point by its number.
    pub fn point(&self, number: usize) -> Point {
        let point = &self.asked.points[number];
        let system = &self.systems[&self.asked.of_kind(FieldKind::System, point)];
        Point { labels: self.labels(point, system.as_ref().ok()), draft: self.draft(point, system) }
    }

    /// Returns the labels of a point. If all values of a field have the same unit, the labels omit it.
    fn labels(&self, point: &[String], system: Option<&SystemDescription>) -> Vec<(String, String)> {
        let Points { fields, columns, units, .. } = self.asked;
        let mut labels = vec![(format!("{MARK}system"), self.asked.system_name())];
        if fields.iter().any(|field| field == "usable") {
            let drives = system.map_or(String::new(), |system| system.drives().to_string());
            labels.push((format!("{MARK}drives"), drives));
        }
        let varied = columns.iter().zip(point).zip(units);
        labels.extend(varied.map(|((column, value), unit)| (format!("{MARK}{column}"), plain(value, unit.as_deref()))));
        labels
    }

    fn draft(&self, point: &[String], system: &Result<SystemDescription, Refused>) -> Result<Draft, Refused> {
        let asked = self.asked;
        let system = system.clone()?;
        let demand = match asked.demand {
            Some(_) => self.demands[&asked.of_kind(FieldKind::Demand, point)].clone()?,
            None => asked.one_size(point)?.into(),
        };
        let part = match &asked.system.part {
            Some(part) => {
                let span = Span::parse(part, system.capacity_bytes(), system.sector_bytes());
                let Span { start_bytes, length_bytes } = span.map_err(Refused::Impossible)?;
                Some((start_bytes, length_bytes))
            }
            None => None,
        };
        let mut draft = Draft::new(asked.system_name(), system, demand);
        draft.span = part;
        let named = asked.fields.iter().zip(&asked.kinds).zip(point);
        let chosen: Vec<_> = named
            .filter(|((field, kind), _)| **kind == FieldKind::Option && *field != "faults")
            .map(|((field, _), value)| (field.clone(), value.clone()))
            .collect();
        draft.apply(&chosen)?;
        draft.faults = asked.option("faults", point).and_then(|name| asked.faults.get(name)).cloned();
        Ok(draft)
    }
}

/// Returns a value without its unit.
fn plain(value: &str, unit: Option<&str>) -> String {
    match unit {
        None => value.to_owned(),
        Some(unit) => value.strip_suffix(unit).unwrap_or(value).trim_end().replace('_', ""),
    }
}
