//! Parses a parameter file as a single stream of `keyword=value`, independent of lines.

use headstack_workload::document::InputError;

use crate::IN_INCLUDED;

/// Maximum length of a list, as in vdbench (`Vdb_scan.numerics`).
const VALUES_MAX: usize = 10_240;

/// Returns the text of an included file, given its name as written.
pub(super) type Include<'i> = &'i dyn Fn(&str) -> std::io::Result<String>;

/// A keyword and its value.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// Keyword in lower case, with at least two characters.
    pub(super) keyword: String,
    /// Text after the equals sign.
    pub(super) raw: String,
    /// Items of the list. A value without parentheses is a list with one item.
    pub(super) items: Vec<Item>,
    pub(super) file: String,
    pub(super) line: usize,
    /// Whether the parameter is in an included file.
    pub(super) is_included: bool,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Text(String),
    /// Hyphen of a range.
    To,
}

/// Reads a file and its included files, and replaces `$name` and `!name`.
pub(super) fn parameters(
    file: &str,
    text: &str,
    substitutes: &[(String, String)],
    include: Include,
) -> Result<Vec<Parameter>, InputError> {
    let mut lines = Vec::new();
    collect(file, text, substitutes, Some(include), &mut lines)?;
    let mut scanner = Scanner { parameters: Vec::new() };
    let mut pending: Option<Line> = None;
    for line in lines {
        // A line that ends with a comma continues on the next line.
        let line = match pending.take() {
            Some(begun) if begun.file != line.file => {
                return Err(begun.error("", "ends with a comma, but its file ends here; end the line without a comma"));
            }
            Some(begun) => Line { text: format!("{}{}", begun.text, line.text), ..begun },
            None => line,
        };
        if line.text.ends_with(',') {
            pending = Some(line);
        } else {
            scanner.scan(&line)?;
        }
    }
    if let Some(line) = pending {
        scanner.scan(&line)?;
    }
    Ok(scanner.parameters)
}

struct Line {
    file: String,
    number: usize,
    text: String,
    /// Whether the line is in an included file.
    is_included: bool,
}

impl Line {
    fn error(&self, key: &str, message: impl Into<String>) -> InputError {
        refused((&self.file, self.number, self.is_included), key, message.into())
    }
}

/// Returns an error at a file and line. For an included file, the error prints no text of the line.
fn refused((file, line, is_included): (&str, usize, bool), key: &str, message: String) -> InputError {
    let key = if is_included { "" } else { key };
    let message = if is_included { IN_INCLUDED.to_owned() } else { message };
    InputError { file: file.to_owned(), line: Some(line), key: key.to_owned(), message }
}

/// Collects lines without comments. Lines of an included file replace the line that includes it.
fn collect(
    file: &str,
    text: &str,
    substitutes: &[(String, String)],
    include: Option<Include>,
    lines: &mut Vec<Line>,
) -> Result<(), InputError> {
    for (index, text) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let text = text.trim();
        if text.starts_with("eof") {
            break;
        }
        if text.is_empty() || text.starts_with(['/', '#', '*']) {
            continue;
        }
        let (number, is_included) = (index + 1, include.is_none());
        let mut line = Line { file: file.to_owned(), number, text: text.to_owned(), is_included };
        substitute(&mut line, substitutes)?;
        if let Some(name) = line.text.strip_prefix("include=") {
            let Some(include) = include else {
                let message = "includes a file; included files must not include others".to_owned();
                return Err(InputError { file: line.file, line: Some(number), key: "include".to_owned(), message });
            };
            let name = name.split_whitespace().next().unwrap_or("");
            let included = include(name).map_err(|error| {
                let error = error.to_string().lines().collect::<Vec<_>>().join(" ");
                line.error("include", format!("{name} cannot be read: {error}"))
            })?;
            collect(name, &included, substitutes, None, lines)?;
            continue;
        }
        line.text = without_comment(&line.text);
        lines.push(line);
    }
    Ok(())
}

/// Replaces `$name` and `!name`, longest names first, so that `$size2` is not read as `$size` followed by 2.
fn substitute(line: &mut Line, substitutes: &[(String, String)]) -> Result<(), InputError> {
    let mut sorted: Vec<&(String, String)> = substitutes.iter().filter(|(name, _)| !name.is_empty()).collect();
    sorted.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in sorted {
        for mark in ['$', '!'] {
            line.text = line.text.replace(&format!("{mark}{name}"), value);
        }
    }
    for name in ["$host", "!host", "#host"] {
        if line.text.contains(name) {
            return Err(line.error(name, "lines repeated for each host are not supported; write them out"));
        }
    }
    for mark in ["=$", "=!", "($", ",$"] {
        if let Some(at) = line.text.find(mark) {
            let name: String = line.text[at + 1..].chars().take_while(|c| !",) ".contains(*c)).collect();
            return Err(line.error(&name, "this variable has no value; add NAME=VALUE"));
        }
    }
    Ok(())
}

/// Returns the line up to its first blank outside quotes.
fn without_comment(text: &str) -> String {
    let mut in_quotes = false;
    let end = text.find(|c: char| {
        in_quotes ^= c == '"';
        c.is_whitespace() && !in_quotes
    });
    text[..end.unwrap_or(text.len())].to_owned()
}

struct Scanner {
    parameters: Vec<Parameter>,
}

impl Scanner {
    fn scan(&mut self, line: &Line) -> Result<(), InputError> {
        let (mut depth, mut in_quotes, mut start) = (0usize, false, 0);
        for (at, c) in line.text.char_indices() {
            match c {
                '"' => in_quotes = !in_quotes,
                _ if in_quotes => {}
                '(' => depth += 1,
                ')' if depth == 0 => return Err(line.error("", "a closing parenthesis has no opening one")),
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    self.add(line, &line.text[start..at])?;
                    start = at + 1;
                }
                _ => {}
            }
        }
        if depth > 0 || in_quotes {
            let what = if in_quotes { "quote" } else { "parenthesis" };
            let message = format!("a {what} is not closed in {:?}; to continue a line, end it with a comma", line.text);
            return Err(line.error("", message));
        }
        self.add(line, &line.text[start..])
    }

    fn add(&mut self, line: &Line, text: &str) -> Result<(), InputError> {
        if text.is_empty() {
            return Ok(());
        }
        let Some((keyword, raw)) = text.split_once('=') else {
            return Err(line.error("", format!("{text:?} is not a parameter; use keyword=value")));
        };
        let keyword = keyword.to_ascii_lowercase();
        if keyword.chars().count() < 2 {
            return Err(line.error(&keyword, "a keyword must have at least two characters"));
        }
        if raw.is_empty() {
            return Err(line.error(&keyword, "the value is missing"));
        }
        let items = items(raw, !matches!(keyword.as_str(), "host" | "hd" | "replay"));
        let (file, is_included, line) = (line.file.clone(), line.is_included, line.number);
        self.parameters.push(Parameter { keyword, raw: raw.replace('"', ""), items, file, line, is_included });
        Ok(())
    }
}

/// Returns the items of `(a,b,c-d)`, or a single item for a value without parentheses.
fn items(raw: &str, ranges: bool) -> Vec<Item> {
    if !raw.starts_with('(') {
        return vec![Item::Text(raw.replace('"', ""))];
    }
    let (mut items, mut item, mut in_quotes) = (Vec::new(), String::new(), false);
    let flush = |item: &mut String, items: &mut Vec<Item>| {
        if !item.is_empty() {
            items.push(Item::Text(std::mem::take(item)));
        }
    };
    for c in raw.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            '(' | ')' | ',' if !in_quotes => flush(&mut item, &mut items),
            '-' if ranges && !in_quotes => {
                flush(&mut item, &mut items);
                items.push(Item::To);
            }
            _ => item.push(c),
        }
    }
    flush(&mut item, &mut items);
    items
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Plain(f64),
    /// A percentage, written with a percent sign; vdbench stores it as a negative number.
    Percent(f64),
}

/// Meaning of the suffix `m`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unit {
    /// 2^20 bytes; k, g and t are also powers of 1024.
    Size,
    /// 60 seconds.
    Seconds,
}

impl Parameter {
    pub(super) fn error(&self, message: impl Into<String>) -> InputError {
        refused((&self.file, self.line, self.is_included), &self.keyword, message.into())
    }

    /// Returns the first item as a word.
    pub(super) fn word(&self) -> Result<&str, InputError> {
        match self.items.first() {
            Some(Item::Text(text)) => Ok(text),
            _ => Err(self.error(format!("{:?} is not a name", self.raw))),
        }
    }

    /// Returns a list of names; `sd1-sd9` stands for nine names.
    pub(super) fn words(&self) -> Result<Vec<String>, InputError> {
        let mut words: Vec<String> = Vec::new();
        let mut is_range = false;
        for item in &self.items {
            match item {
                Item::To if is_range || words.is_empty() => return Err(self.bad_range()),
                Item::To => is_range = true,
                Item::Text(text) if is_range => {
                    is_range = false;
                    let (first, last) = (words.last().and_then(|word| numbered(word)), numbered(text));
                    let (Some((prefix, first)), Some((other, last))) = (first, last) else {
                        return Err(self.bad_range());
                    };
                    if prefix != other || first >= last || last - first > VALUES_MAX as u64 {
                        return Err(self.bad_range());
                    }
                    let prefix = prefix.to_owned();
                    words.extend((first + 1..=last).map(|number| format!("{prefix}{number}")));
                }
                Item::Text(text) => words.push(text.clone()),
            }
        }
        match is_range || words.is_empty() || words.len() > VALUES_MAX {
            true => Err(self.bad_range()),
            false => Ok(words),
        }
    }

    fn bad_range(&self) -> InputError {
        self.error(format!("{:?} is not a list of names; use for example (sd1,sd3-sd5) or sd*", self.raw))
    }

    /// Returns a single number.
    pub(super) fn number(&self, unit: Unit) -> Result<Number, InputError> {
        match self.items.first() {
            Some(Item::Text(text)) => number(text, unit).ok_or_else(|| self.not_a_number(text)),
            _ => Err(self.not_a_number(&self.raw)),
        }
    }

    fn not_a_number(&self, text: &str) -> InputError {
        self.error(format!("{text:?} is not a number; use a number with an optional k, m, g or t"))
    }

    /// Returns numbers; `1-64,d` doubles from 1 to 64, and `10-50,10` increases from 10 to 50 by 10.
    pub(super) fn numbers(&self, unit: Unit) -> Result<Vec<Number>, InputError> {
        let mut numbers: Vec<Number> = Vec::new();
        let mut items = self.items.iter();
        while let Some(item) = items.next() {
            let Item::Text(text) = item else {
                let range = (numbers.last().copied(), items.next(), items.next());
                let (Some(Number::Plain(first)), Some(Item::Text(last)), Some(Item::Text(step))) = range else {
                    return Err(
                        self.error(format!("{:?} is not a range; use for example (1-64,d) or (10-50,10)", self.raw))
                    );
                };
                let Some(Number::Plain(last)) = number(last, unit) else {
                    return Err(self.not_a_number(last));
                };
                self.extend(&mut numbers, first, last, step, unit)?;
                continue;
            };
            numbers.push(number(text, unit).ok_or_else(|| self.not_a_number(text))?);
        }
        match numbers.is_empty() {
            true => Err(self.error(format!("{:?} contains no number", self.raw))),
            false => Ok(numbers),
        }
    }

    /// Adds the numbers of a range after its first number, which is already in the list.
    fn extend(
        &self,
        numbers: &mut Vec<Number>,
        first: f64,
        last: f64,
        step: &str,
        unit: Unit,
    ) -> Result<(), InputError> {
        let next: Box<dyn Fn(f64) -> f64> = match (step.eq_ignore_ascii_case("d"), number(step, unit)) {
            (true, _) if first > 0.0 && last > 0.0 && first < last => Box::new(|value| value * 2.0),
            (true, _) if first > 0.0 && last > 0.0 => Box::new(|value| value / 2.0),
            (false, Some(Number::Plain(step))) if step > 0.0 => Box::new(move |value| value + step),
            _ => {
                return Err(
                    self.error(format!("{step:?} is not a step of a range; use d (doubled) or a number above 0"))
                );
            }
        };
        let is_down = step.eq_ignore_ascii_case("d") && first >= last;
        let mut value = next(first);
        while if is_down { value >= last } else { value <= last } {
            numbers.push(Number::Plain(value));
            if numbers.len() > VALUES_MAX {
                return Err(self.error(format!("{:?} yields more than {VALUES_MAX} numbers; use fewer", self.raw)));
            }
            value = next(value);
        }
        Ok(())
    }

    /// Returns a number without a percent sign, within a range.
    pub(super) fn plain(&self, unit: Unit, allowed: std::ops::RangeInclusive<f64>) -> Result<f64, InputError> {
        let number = self.number(unit)?;
        self.within(number, allowed)
    }

    pub(super) fn within(&self, number: Number, allowed: std::ops::RangeInclusive<f64>) -> Result<f64, InputError> {
        match number {
            Number::Plain(value) if allowed.contains(&value) => Ok(value),
            _ => {
                let (start, end) = (allowed.start(), allowed.end());
                Err(self.error(format!("{} is out of range; must be {start} to {end}", self.raw)))
            }
        }
    }

    /// Converts seconds to nanoseconds; the maximum is a year.
    pub(super) fn duration_ns(&self) -> Result<u64, InputError> {
        let seconds = self.plain(Unit::Seconds, 0.0..=31_536_000.0)?;
        // vdbench truncates to whole seconds.
        Ok(seconds.trunc() as u64 * 1_000_000_000)
    }

    /// Whether the value is yes.
    pub(super) fn is_yes(&self) -> bool {
        self.raw.to_ascii_lowercase().starts_with('y')
    }
}

/// Splits a name such as `sd12` into `sd` and 12.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((prefix, name[prefix.len()..].parse().ok()?))
}

/// Parses a number with an optional suffix: k, m, g or t, each with an optional b; h; s; or a percent sign.
pub(super) fn number(text: &str, unit: Unit) -> Option<Number> {
    let lower = text.to_ascii_lowercase();
    let finite = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain(&lower) {
        return finite(&lower).map(Number::Plain);
    }
    if let Some(percent) = lower.strip_suffix('%') {
        return finite(percent).filter(|_| is_plain(percent)).map(Number::Percent);
    }
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    let front = &lower[..lower.len() - lower.chars().next_back().map_or(0, char::len_utf8)];
    let factor = match (lower.chars().next_back()?, unit) {
        ('k', _) => 1024.0,
        ('m', Unit::Size) => 1024.0 * 1024.0,
        ('m', Unit::Seconds) => 60.0,
        ('g', _) => 1024.0 * 1024.0 * 1024.0,
        ('t', _) => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        ('h', _) => 3_600.0,
        ('s', Unit::Seconds) => 1.0,
        _ => return None,
    };
    finite(front).filter(|_| is_plain(front)).map(|value| Number::Plain(value * factor))
}
