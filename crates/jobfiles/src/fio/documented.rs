//! Checks that docs/fio.md matches the reader. With `HEADSTACK_WRITE_DOCS=1`, the test writes the document.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::options::{Fate, Kind, OptionOfFio, all};

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fio.md")
}

/// Compares a section of the document with `made`, or writes it.
fn check(section: &str, made: &str) {
    let text = fs::read_to_string(document()).unwrap();
    let begin = format!("<!-- {section}: made from the reader -->\n");
    let (before, rest) = text.split_once(&begin).unwrap();
    let (written, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("HEADSTACK_WRITE_DOCS").is_some() {
        fs::write(document(), format!("{before}{begin}{made}<!-- end -->{after}")).unwrap();
    } else {
        assert_eq!(written, made, "docs/fio.md is out of date: set HEADSTACK_WRITE_DOCS=1 to update it");
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn options() -> String {
    let mut done: Vec<String> = Vec::new();
    let mut refused: Vec<(String, &str)> = Vec::new();
    let mut others: Vec<(&str, Vec<String>)> = Vec::new();
    for (option, _) in all() {
        let name = option.name.to_owned();
        match option.fate {
            Fate::Done => done.push(name),
            Fate::Refused(why) => refused.push((name, why)),
            Fate::Not(remark) => match others.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, names)) => names.push(name),
                None => others.push((remark, vec![name])),
            },
        }
    }
    done.sort();
    refused.sort();
    let mut made = format!("Supported (some values with a message): {}.\n\nIgnored with a message:\n\n", listed(&done));
    made.push_str("| message | options |\n| --- | --- |\n");
    for (remark, mut names) in others {
        names.sort();
        writeln!(made, "| {remark} | {} |", listed(&names)).unwrap();
    }
    made.push_str(
        "\nRefused, because they would change what is written or where:\n\n| option | message |\n| --- | --- |\n",
    );
    for (name, why) in refused {
        writeln!(made, "| `{name}` | {why} |").unwrap();
    }
    made
}

/// Lists fio's example job files by outcome.
fn examples(paths: &[PathBuf]) -> String {
    let environment = |name: &str| super::surroundings(name).or_else(|| Some("1".to_owned()));
    let include = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let (mut run, mut remarked, mut other_engines, mut refused) = (vec![], vec![], vec![], vec![]);
    for path in paths {
        let file_name = path.file_name().unwrap().to_string_lossy();
        let text = fs::read_to_string(path).unwrap();
        let name = format!("`{file_name}`");
        match super::read(&file_name, &text, &[], &environment, &include) {
            Ok(file) if file.remarks.is_empty() => run.push(name),
            Ok(file) => {
                let mut options: Vec<String> = file.remarks.into_iter().map(|remark| remark.option).collect();
                options.sort();
                options.dedup();
                remarked.push(format!("{name} ({})", listed(&options)));
            }
            Err(error) => {
                let reason = error.message.split(';').next().unwrap_or_default();
                if reason.ends_with("does not access files or block devices") {
                    other_engines.push(name);
                } else {
                    refused.push(format!("{name} (line {}: {reason})", error.line.unwrap_or(0)));
                }
            }
        }
    }
    let mut made = String::new();
    for (outcome, names) in [
        ("Run", run),
        ("Run, with a message about these options", remarked),
        ("Refused, because their engines do not access files or block devices", other_engines),
        ("Refused for other reasons", refused),
    ] {
        writeln!(made, "- {outcome}: {}", names.join(", ")).unwrap();
    }
    made
}

/// Returns a valid value for an option.
fn sample(option: &OptionOfFio) -> String {
    match (option.name, option.kind) {
        ("ioengine", _) => "sync".to_owned(),
        ("buffer_pattern", _) => "0x1".to_owned(),
        ("wait_for", _) => "none".to_owned(),
        ("uri", _) => "nbd://localhost".to_owned(),
        (_, Kind::Text | Kind::TextOrNone) => "text".to_owned(),
        (_, Kind::Flag | Kind::Bool(_)) => "1".to_owned(),
        (_, Kind::Choice(choices) | Kind::ChoiceAnd(choices)) => choices[0].to_owned(),
        (_, Kind::Whole(least, _) | Kind::Wholes(least, _)) => least.max(1).to_string(),
        (_, Kind::Signed(least, _)) => least.to_string(),
        (_, Kind::Ranges) => "4k-8k".to_owned(),
        (_, Kind::Splits) => "4k/100".to_owned(),
        (_, Kind::SizeRange | Kind::Extent) => "4k".to_owned(),
        (_, Kind::Seconds | Kind::SecondsRange | Kind::Micros | Kind::Floats(_)) => "1".to_owned(),
    }
}

/// Checks that the reader accepts every option that the document lists as supported.
#[test]
fn options_that_are_done_are_taken() {
    let include = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    for (option, _) in all().filter(|(option, _)| matches!(option.fate, Fate::Done)) {
        let text = format!("[j]\nsize=1m\nfilename=f\nrw=randread\n{}={}\n", option.name, sample(&option));
        let taken = super::read("test.fio", &text, &[], &|_| None, &include);
        assert!(taken.is_ok(), "{text}\n{}", taken.unwrap_err());
    }
}

#[test]
fn the_options_are_those_of_the_document() {
    check("options", &options());
}

#[test]
fn examples_behave_as_documented() {
    let stated = std::env::var("HEADSTACK_FIO_EXAMPLES").ok();
    let folder = stated.unwrap_or_else(|| "/usr/share/doc/fio/examples".to_owned());
    let found = fs::read_dir(&folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = found.filter(|path| path.extension().is_some_and(|is| is == "fio")).collect();
    paths.sort();
    if paths.is_empty() {
        return headstack_needs::lacks(
            headstack_needs::Need::Data,
            format_args!("there are no examples of fio in {folder}; set HEADSTACK_FIO_EXAMPLES to another folder"),
        );
    }
    check("examples", &examples(&paths));
}
