//! Converts the tables of links and drives to links, members and the paths between them.

use headstack_sim::array::description::Member;
use headstack_sim::link::{LinkDescription, LinkKind};
use headstack_workload::InputError;
use headstack_workload::quantity::{DurationNs, LineCoding, Rate};

use super::file::{DrivesTable, LinkTable};
use super::resolver::{Resolver, ns};
use super::standards::LinkStandard;

/// Maximum number of links or drives in a table.
pub(super) const COUNT_MAX: u32 = 4096;

/// The links of an array with their names and paths.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) descriptions: Vec<LinkDescription>,
    /// Index of the next link towards the controller, for each link.
    ups: Vec<Option<u32>>,
    /// Name and links of each table.
    tables: Vec<(String, Vec<u32>)>,
}

impl Links {
    /// Returns the indexes of the named links. A name is that of a link, a range of links, or a table for all of its
    /// links.
    pub(super) fn find(&self, resolver: &Resolver, key: &str, names: &[String]) -> Result<Vec<u32>, InputError> {
        let own: Vec<&str> = self.descriptions.iter().map(|link| link.name.as_str()).collect();
        let mut resolved = Vec::new();
        for name in names {
            match self.tables.iter().find(|(table, _)| table == name) {
                Some((_, links)) => resolved.extend(links),
                None => resolved.extend(resolver.find(key, "link", &own, name)?),
            }
        }
        Ok(resolved)
    }

    /// Returns the links from `first` to the controller.
    fn way(&self, first: u32) -> Vec<u32> {
        std::iter::successors(Some(first), |&link| self.ups[link as usize]).collect()
    }
}

/// Returns which of `hangers` links item `index` of `count` is attached to. Links get equal consecutive runs of items.
fn dealt(index: usize, count: usize, hangers: usize) -> usize {
    index * hangers / count
}

/// Rounds a standard's rate to the precision with which it is known.
fn tenths_of_mb(bytes_per_s: f64) -> f64 {
    (bytes_per_s / 1e5).round() * 1e5
}

impl Resolver<'_> {
    /// Returns the links of all tables.
    pub(super) fn links(&mut self, tables: &[LinkTable]) -> Result<Links, InputError> {
        let mut links = Links::default();
        for (index, table) in tables.iter().enumerate() {
            let key = format!("links[{index}]");
            let names = self.names(&format!("{key}.count"), &table.name, table.count, 0)?;
            let description = self.link(&key, table)?;
            let first = links.descriptions.len() as u32;
            links.tables.push((table.name.clone(), (first..first + names.len() as u32).collect()));
            links.descriptions.extend(names.into_iter().map(|name| LinkDescription { name, ..description.clone() }));
        }
        links.ups = vec![None; links.descriptions.len()];
        for (index, table) in tables.iter().enumerate() {
            let key = format!("links[{index}].up");
            let Some(names) = &table.up else { continue };
            let ups = links.find(self, &key, names)?;
            let these = links.tables[index].1.clone();
            if ups.is_empty() {
                return Err(self.error(&key, "the list is empty; name at least one link or omit the key"));
            }
            for (place, &link) in these.iter().enumerate() {
                links.ups[link as usize] = Some(ups[dealt(place, these.len(), ups.len())]);
            }
            let steps = links.descriptions.len();
            let circles = |&link: &u32| {
                std::iter::successors(Some(link), |&at| links.ups[at as usize]).take(steps + 1).count() > steps
            };
            if these.iter().any(circles) {
                return Err(self.error(&key, format!("link {:?} is part of a loop", table.name)));
            }
        }
        Ok(links)
    }

    /// Returns one link of a table without its name.
    fn link(&mut self, key: &str, table: &LinkTable) -> Result<LinkDescription, InputError> {
        let figures = table.kind.figures();
        let own = |field: &str| format!("{key}.{field}");
        let rule = format!("{}: {}", table.kind.name(), figures.source);
        self.check_variants(key, table)?;
        let lanes = table.lanes.unwrap_or(1);
        let lane_rate = match (table.kind, table.generation) {
            (LinkStandard::Pcie, Some(generation)) => LinkStandard::pcie_bytes_per_s(generation),
            _ => figures.bytes_per_s,
        };
        let rate = match (table.rate, lane_rate) {
            (Some(rate), _) => rate.data(match figures.kind {
                LinkKind::Sata | LinkKind::Sas | LinkKind::FcLoop => LineCoding::TenBits,
                LinkKind::Scsi | LinkKind::Ata | LinkKind::Pci | LinkKind::Ethernet | LinkKind::Mirror => {
                    LineCoding::EightBits
                }
            }),
            (None, Some(rate)) => self.or(None, &own("rate"), &rule, Rate(tenths_of_mb(rate * f64::from(lanes)))),
            (None, None) => {
                return Err(self.error(&own("rate"), "this key is missing; this kind of link has no default rate"));
            }
        };
        if rate.0 <= 0.0 {
            return Err(self.error(&own("rate"), format!("{rate} is not allowed; the rate must be above 0")));
        }
        let mut time = |stated_time: Option<DurationNs>, field: &str, standard: i64| {
            let time = self.or(stated_time, &own(field), &rule, DurationNs(standard));
            ns(self, &own(field), time)
        };
        Ok(LinkDescription {
            name: String::new(),
            kind: figures.kind,
            ns_per_byte: 1e9 / rate.0,
            command_ns: time(table.command, "command", figures.command_ns)?,
            read_ns: time(table.read, "read", figures.read_ns)?,
            write_ns: time(table.write, "write", figures.write_ns)?,
            latency_ns: time(table.latency, "latency", figures.latency_ns)?,
            full_duplex: table.full_duplex.unwrap_or(figures.full_duplex),
            held_by_command: figures.kind == LinkKind::Ata && !table.overlapped.unwrap_or(false),
        })
    }

    /// Returns an error if the table has keys that only other kinds of links support.
    fn check_variants(&self, key: &str, table: &LinkTable) -> Result<(), InputError> {
        let name = table.kind.name();
        let figures = table.kind.figures();
        if table.lanes.is_some_and(|lanes| !figures.has_lanes || !(1..=64).contains(&lanes)) {
            let allowed = if figures.has_lanes { "must be 1 to 64" } else { "not supported; omit the key" };
            return Err(self.error(&format!("{key}.lanes"), format!("lanes of {name}: {allowed}")));
        }
        let generations = table.kind == LinkStandard::Pcie;
        if table.generation.is_some_and(|number| !generations || LinkStandard::pcie_bytes_per_s(number).is_none()) {
            let allowed = if generations { "must be 1 to 5" } else { "not supported; omit the key" };
            return Err(self.error(&format!("{key}.generation"), format!("generation of {name}: {allowed}")));
        }
        if generations && table.generation.is_none() && table.rate.is_none() {
            return Err(self.error(&format!("{key}.generation"), "this key is missing; must be 1 to 5"));
        }
        if table.overlapped.is_some() && figures.kind != LinkKind::Ata {
            let message = format!("commands never occupy {name}; only ata kinds have this key");
            return Err(self.error(&format!("{key}.overlapped"), message));
        }
        Ok(())
    }

    /// Returns the drives of all tables. Each member's `device` is the index of its table.
    pub(super) fn members(&mut self, tables: &[DrivesTable], links: &Links) -> Result<Vec<Member>, InputError> {
        let mut members: Vec<Member> = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            let id = table.id.as_deref().unwrap_or("d");
            let same = |other: &&DrivesTable| other.id.as_deref().unwrap_or("d") == id;
            let before: u32 = tables[..index].iter().filter(same).map(|other| other.count.unwrap_or(1)).sum();
            let count = if table.id.is_none() { Some(table.count.unwrap_or(1)) } else { table.count };
            let names = self.names(&format!("drives[{index}].count"), id, count, before)?;
            let key = format!("drives[{index}].links");
            let hangers = links.find(self, &key, table.links.as_deref().unwrap_or_default())?;
            let multipath = table.multipath.unwrap_or(false);
            if multipath && hangers.len() < 2 {
                let message = format!("needs two or more links, not {}", hangers.len());
                return Err(self.error(&format!("drives[{index}].multipath"), message));
            }
            let count = names.len();
            members.extend(names.into_iter().enumerate().map(|(place, name)| {
                let ways = match hangers.as_slice() {
                    [] => vec![Vec::new()],
                    _ if multipath => hangers.iter().map(|&link| links.way(link)).collect(),
                    _ => vec![links.way(hangers[dealt(place, count, hangers.len())])],
                };
                Member { name, device: index as u32, ways }
            }));
        }
        Ok(members)
    }

    /// Returns the names of a table's items: only `id` without a count, otherwise `id` followed by numbers from
    /// `first`.
    fn names(&self, key: &str, id: &str, count: Option<u32>, first: u32) -> Result<Vec<String>, InputError> {
        match count {
            None => Ok(vec![id.to_owned()]),
            Some(count) if (1..=COUNT_MAX).contains(&count) => {
                Ok((first..first + count).map(|number| format!("{id}{number}")).collect())
            }
            Some(count) => Err(self.error(key, format!("{count} is not allowed; must be 1 to {COUNT_MAX}"))),
        }
    }
}
