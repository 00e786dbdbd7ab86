//! Blocks, instances and topologies of DiskSim's parameter language, with the file and line of every value.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use headstack_workload::InputError;

use super::lexer::{Token, shortened, tokens};

/// Maximum nesting depth of blocks, lists, topologies and files, and maximum length of a chain of subtypes.
const NESTING_MAX: usize = 64;
/// Maximum number of files in an import. Without a limit, files that each `source` two others would double in number at
/// every level.
const FILES_MAX: usize = 1_000;
/// Maximum number of names that all ranges `a0 .. a9` of an import may expand to.
const RANGE_NAMES_MAX: u64 = 100_000;

/// A file and a line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

impl Place {
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> InputError {
        InputError { file: self.file.to_string(), line: Some(self.line), key: key.to_owned(), message: message.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) kind: ValueKind,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
pub(super) enum ValueKind {
    Integer(i64),
    Float(f64),
    Word(Rc<str>),
    List(Rc<[Value]>),
    Block(Rc<Block>),
    Topology,
}

impl Value {
    /// Formats the value in a few characters for a message.
    pub(super) fn describe(&self) -> String {
        match &self.kind {
            ValueKind::Integer(value) => value.to_string(),
            ValueKind::Float(value) => format!("{value:?}"),
            ValueKind::Word(word) => shortened(word),
            ValueKind::List(items) => format!("[{} values]", items.len()),
            ValueKind::Block(block) => format!("{} {{...}}", shortened(&block.module)),
            ValueKind::Topology => "topology".to_owned(),
        }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        match self.kind {
            ValueKind::Integer(value) => Some(value as f64),
            ValueKind::Float(value) => Some(value),
            _ => None,
        }
    }
}

/// A block: `TYPE NAME { parameters }`. A block used as a value may have no name.
#[derive(Debug)]
pub(super) struct Block {
    /// The block's module; for a subtype, the module of its base block.
    pub(super) module: Rc<str>,
    pub(super) name: Option<Rc<str>>,
    pub(super) place: Place,
    parameters: BTreeMap<String, Parameter>,
    parent: Option<Parent>,
}

/// The block from which a subtype inherits parameters, and the length of the chain of base blocks.
type Parent = (Rc<Block>, usize);

/// A `name = value` pair; `place` is the place of the name.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) value: Value,
    pub(super) place: Place,
}

impl Block {
    /// Returns the parameter, which may be inherited.
    pub(super) fn get(&self, name: &str) -> Option<&Parameter> {
        let inherited = || self.parent.as_ref().and_then(|(parent, _)| parent.get(name));
        self.parameters.get(name).or_else(inherited)
    }

    /// Returns the names of all parameters, own and inherited, in ascending order.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
        if let Some((parent, _)) = &self.parent {
            names.extend(parent.names());
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the block's name, or its module if it has no name, for messages.
    pub(super) fn label(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.module)
    }
}

/// A statement `instantiate [ name ] as BLOCK`.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) name: Rc<str>,
    pub(super) block: Rc<Block>,
}

/// A component of a topology and the components below it.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) name: Rc<str>,
    pub(super) children: Vec<Component>,
}

/// All definitions of a file and of the files that it names.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// Named blocks, including nested ones, in the order of definition.
    pub(super) blocks: Vec<Rc<Block>>,
    pub(super) instances: Vec<Instance>,
    pub(super) topologies: Vec<Component>,
    pub(super) warnings: Vec<String>,
}

/// A function that reads a file's text.
pub(super) type ReadFile<'r> = dyn FnMut(&Path) -> io::Result<String> + 'r;

/// Parses `text`, the content of `path`, and reads the files that it names with `read`.
///
/// # Errors
/// If the text, or a file that it names, is not valid in DiskSim's parameter language.
pub(super) fn parse(path: &Path, text: &str, read: &mut ReadFile) -> Result<Program, InputError> {
    let mut session = Session {
        read,
        program: Program::default(),
        names: HashMap::new(),
        open_files: vec![path.to_owned()],
        files_read: 1,
        depth: 0,
        range_names: 0,
    };
    FileParser::new(&mut session, path, text)?.items()?;
    Ok(session.program)
}

/// State shared by the files of an import.
struct Session<'r> {
    read: &'r mut ReadFile<'r>,
    program: Program,
    names: HashMap<Rc<str>, Rc<Block>>,
    open_files: Vec<PathBuf>,
    files_read: usize,
    depth: usize,
    range_names: u64,
}

/// The tokens of a file and the position of the parser.
struct FileParser<'s, 'r, 't> {
    session: &'s mut Session<'r>,
    file: Rc<str>,
    folder: PathBuf,
    tokens: Vec<(Token<'t>, usize)>,
    next: usize,
    /// The parameter or block being read, for messages.
    key: String,
}

impl<'s, 'r, 't> FileParser<'s, 'r, 't> {
    fn new(session: &'s mut Session<'r>, path: &Path, text: &'t str) -> Result<Self, InputError> {
        let file = path.display().to_string();
        Ok(FileParser {
            session,
            tokens: tokens(&file, text)?,
            file: file.into(),
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            next: 0,
            key: String::new(),
        })
    }

    fn peek(&self, ahead: usize) -> Option<Token<'t>> {
        self.tokens.get(self.next + ahead).map(|(token, _)| *token)
    }

    /// Returns the place of the next token, or of the last one at the end of the file.
    fn place(&self) -> Place {
        let at = self.tokens.get(self.next).or(self.tokens.last());
        Place { file: self.file.clone(), line: at.map_or(1, |(_, line)| *line) }
    }

    /// Returns the error for a next token that is not `expected`.
    fn unexpected(&self, expected: &str) -> InputError {
        let found = match self.peek(0) {
            Some(token) => format!("found {}", token.describe()),
            None => "but the file ends here".to_owned(),
        };
        self.place().error(&self.key, format!("expected {expected}, {found}"))
    }

    fn at_symbol(&self, symbol: char) -> bool {
        self.peek(0) == Some(Token::Symbol(symbol))
    }

    fn symbol(&mut self, symbol: char, expected: &str) -> Result<(), InputError> {
        if !self.at_symbol(symbol) {
            return Err(self.unexpected(expected));
        }
        self.next += 1;
        Ok(())
    }

    fn word(&mut self, expected: &str) -> Result<&'t str, InputError> {
        let Some(Token::Word(word)) = self.peek(0) else {
            return Err(self.unexpected(expected));
        };
        self.next += 1;
        Ok(word)
    }

    /// Runs `inner` one nesting level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, InputError>) -> Result<T, InputError> {
        if self.session.depth == NESTING_MAX {
            let message = format!("nested too deeply; at most {NESTING_MAX} levels are allowed");
            return Err(self.place().error(&self.key, message));
        }
        self.session.depth += 1;
        let result = inner(self);
        self.session.depth -= 1;
        result
    }

    /// Parses a whole file of definitions.
    fn items(&mut self) -> Result<(), InputError> {
        while self.peek(0).is_some() {
            self.key.clear();
            match self.peek(0) {
                Some(Token::Word("source")) => self.source(|parser| parser.items())?,
                Some(Token::Word("instantiate")) => self.instantiate()?,
                Some(Token::Word("topology")) => {
                    let component = self.topology()?;
                    self.session.program.topologies.push(component);
                }
                Some(Token::Word(_)) => {
                    self.block()?;
                }
                _ => return Err(self.unexpected("a definition `TYPE NAME {`, `instantiate`, `topology` or `source`")),
            }
        }
        Ok(())
    }

    /// Parses a file that contains only one value.
    fn single_value(&mut self) -> Result<Value, InputError> {
        let value = self.value()?;
        match self.peek(0) {
            None => Ok(value),
            Some(_) => Err(self.unexpected("the end of the file after the value")),
        }
    }

    /// Parses `source FILE`; `parse` reads the content of the file.
    fn source<T>(
        &mut self,
        parse: impl FnOnce(&mut FileParser<'_, 'r, '_>) -> Result<T, InputError>,
    ) -> Result<T, InputError> {
        let place = self.place();
        self.next += 1;
        let name = self.word("a file name after `source`")?;
        let path = self.folder.join(name);
        if self.session.open_files.contains(&path) {
            return Err(place.error("source", format!("`{}` sources itself", shortened(name))));
        }
        if self.session.files_read == FILES_MAX {
            return Err(place.error("source", format!("more than {FILES_MAX} files are named; reduce their number")));
        }
        self.session.files_read += 1;
        let text = (self.session.read)(&path).map_err(|error| {
            let folder = "the file must be in or below this file's folder";
            place.error("source", format!("cannot read `{}`: {error}; {folder}", shortened(name)))
        })?;
        self.nested(|parser| {
            parser.session.open_files.push(path.clone());
            let result = parse(&mut FileParser::new(parser.session, &path, &text)?);
            parser.session.open_files.pop();
            result
        })
    }

    /// Parses `instantiate [ names ] as NAME`.
    fn instantiate(&mut self) -> Result<(), InputError> {
        "instantiate".clone_into(&mut self.key);
        self.next += 1;
        let names = self.list()?;
        if self.word("`as`")? != "as" {
            self.next -= 1;
            return Err(self.unexpected("`as`"));
        }
        let place = self.place();
        let target = self.word("the name of a block")?;
        let Some(block) = self.session.names.get(target).cloned() else {
            let message = format!("no block is called `{}`; define it before this line", shortened(target));
            return Err(place.error(&self.key, message));
        };
        for name in names.iter() {
            let ValueKind::Word(word) = &name.kind else {
                return Err(name.place.error(&self.key, format!("expected a name, not {}", name.describe())));
            };
            self.session.program.instances.push(Instance { name: word.clone(), block: block.clone() });
        }
        Ok(())
    }

    /// Parses `topology TYPE name [ ... ]`.
    fn topology(&mut self) -> Result<Component, InputError> {
        "topology".clone_into(&mut self.key);
        self.next += 1;
        self.component()
    }

    fn component(&mut self) -> Result<Component, InputError> {
        self.word("the type of a component")?;
        let name: Rc<str> = self.word("the name of a component")?.into();
        self.symbol('[', "`[` and the components below this one")?;
        let children = self.nested(|parser| {
            parser.separated(']', |p, children| {
                children.push(p.component()?);
                Ok(())
            })
        })?;
        Ok(Component { name, children })
    }

    /// Parses comma-separated items up to `close`, which must not follow a comma.
    fn separated<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self, &mut Vec<T>) -> Result<(), InputError>,
    ) -> Result<Vec<T>, InputError> {
        let opened_at = self.tokens[self.next - 1].1;
        let mut items = Vec::new();
        if self.at_symbol(close) {
            self.next += 1;
            return Ok(items);
        }
        loop {
            item(self, &mut items)?;
            if self.at_symbol(close) {
                self.next += 1;
                return Ok(items);
            }
            self.symbol(',', &format!("`,` or `{close}`, which closes the bracket of line {opened_at}"))?;
        }
    }

    /// Parses a block, named or not: `TYPE NAME {` or `TYPE {`.
    fn block(&mut self) -> Result<Rc<Block>, InputError> {
        let place = self.place();
        let kind = self.word("the type of a block")?;
        let (module, parent) = self.block_type(kind, &place)?;
        let name: Option<Rc<str>> = match self.peek(0) {
            Some(Token::Word(word)) => {
                self.next += 1;
                Some(word.into())
            }
            _ => None,
        };
        let label = name.as_deref().unwrap_or(kind);
        label.clone_into(&mut self.key);
        self.symbol('{', "a name and `{`")?;
        let definitions = self.nested(|parser| parser.separated('}', FileParser::expression))?;
        let mut parameters = BTreeMap::new();
        for (name, parameter) in definitions {
            let place = parameter.place.clone();
            if parameters.insert(name, parameter).is_some() {
                self.warn(&place, format!("set twice in `{}`; the last value counts", shortened(label)));
            }
        }
        let block = Rc::new(Block { module, name, place, parameters, parent });
        Ok(self.define(block))
    }

    /// Returns the module of a block's type and, if the block is a subtype, its base block.
    fn block_type(&self, kind: &str, place: &Place) -> Result<(Rc<str>, Option<Parent>), InputError> {
        if let Some(parent) = self.session.names.get(kind) {
            let length = 1 + parent.parent.as_ref().map_or(0, |(_, length)| *length);
            if length > NESTING_MAX {
                let message = format!("a subtype of a subtype; at most {NESTING_MAX} levels are allowed");
                return Err(place.error(kind, message));
            }
            return Ok((parent.module.clone(), Some((parent.clone(), length))));
        }
        if ["disksim_", "dm_"].iter().any(|prefix| kind.starts_with(prefix)) {
            return Ok((kind.into(), None));
        }
        let message = "unknown type; allowed: a module (disksim_..., dm_...) or the name of an earlier block";
        Err(place.error(&shortened(kind), message))
    }

    /// Defines a named block. Like DiskSim, keeps the first of two blocks with the same name.
    fn define(&mut self, block: Rc<Block>) -> Rc<Block> {
        let Some(name) = block.name.clone() else {
            return block;
        };
        if let Some(first) = self.session.names.get(&name).cloned() {
            let message = format!("`{}` is already defined at {}; this one is ignored", shortened(&name), first.place);
            self.warn(&block.place, message);
            return first;
        }
        self.session.names.insert(name, block.clone());
        self.session.program.blocks.push(block.clone());
        block
    }

    fn warn(&mut self, place: &Place, message: String) {
        self.session.program.warnings.push(format!("{place}: {message}"));
    }

    /// Parses `parameter name = value` or `[ name, name ] = value`.
    fn expression(&mut self, definitions: &mut Vec<(String, Parameter)>) -> Result<(), InputError> {
        let place = self.place();
        let names = if self.at_symbol('[') {
            self.next += 1;
            self.separated(']', |parser, names| {
                names.push(parser.parameter_name()?);
                Ok(())
            })?
        } else {
            vec![self.parameter_name()?]
        };
        self.symbol('=', "`=`")?;
        let value = self.value()?;
        for name in names {
            definitions.push((name, Parameter { value: value.clone(), place: place.clone() }));
        }
        Ok(())
    }

    fn parameter_name(&mut self) -> Result<String, InputError> {
        let mut name = self.word("a parameter name (no comma before the closing brace)")?.to_owned();
        while let Some(Token::Word(word)) = self.peek(0) {
            name.push(' ');
            name.push_str(word);
            self.next += 1;
        }
        self.key = shortened(&name);
        Ok(name)
    }

    fn value(&mut self) -> Result<Value, InputError> {
        let place = self.place();
        let kind = match (self.peek(0), self.peek(1), self.peek(2)) {
            (Some(Token::Integer(value)), ..) => {
                self.next += 1;
                ValueKind::Integer(value)
            }
            (Some(Token::Float(value)), ..) => {
                self.next += 1;
                ValueKind::Float(value)
            }
            (Some(Token::Symbol('[')), ..) => ValueKind::List(self.list()?),
            (Some(Token::Word("source")), ..) => {
                return self.source(|parser| parser.single_value());
            }
            (Some(Token::Word("topology")), ..) => {
                self.topology()?;
                ValueKind::Topology
            }
            (Some(Token::Word(_)), Some(Token::Symbol('{')), _)
            | (Some(Token::Word(_)), Some(Token::Word(_)), Some(Token::Symbol('{'))) => ValueKind::Block(self.block()?),
            (Some(Token::Word(word)), ..) => {
                self.next += 1;
                ValueKind::Word(word.into())
            }
            _ => return Err(self.unexpected("a number, a word, a list, a block or `source FILE`")),
        };
        Ok(Value { kind, place })
    }

    /// Parses a list `[ v, v, ... ]`, in which `disk0 .. disk6` stands for seven names.
    fn list(&mut self) -> Result<Rc<[Value]>, InputError> {
        self.symbol('[', "`[`")?;
        let items = self.nested(|parser| parser.separated(']', FileParser::list_item))?;
        Ok(items.into())
    }

    fn list_item(&mut self, items: &mut Vec<Value>) -> Result<(), InputError> {
        let first = self.value()?;
        if self.peek(0) != Some(Token::Range) {
            items.push(first);
            return Ok(());
        }
        self.next += 1;
        let last = self.value()?;
        let names = match (&first.kind, &last.kind) {
            (ValueKind::Word(first), ValueKind::Word(last)) => numbered(first, last),
            _ => None,
        };
        let Some((stem, from, to)) = names else {
            let message = "expected two names with the same stem and ascending numbers, such as disk0 .. disk6";
            return Err(first.place.error(&self.key, message));
        };
        self.session.range_names = (to - from).saturating_add(1).saturating_add(self.session.range_names);
        if self.session.range_names > RANGE_NAMES_MAX {
            let message = format!("expands to too many names; at most {RANGE_NAMES_MAX} are allowed");
            return Err(first.place.error(&self.key, message));
        }
        items.extend((from..=to).map(|number| Value {
            kind: ValueKind::Word(format!("{stem}{number}").into()),
            place: first.place.clone(),
        }));
        Ok(())
    }
}

/// Returns the stem and the numbers of a range such as `disk0 .. disk6`.
fn numbered<'n>(first: &'n str, last: &str) -> Option<(&'n str, u64, u64)> {
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let from = first[stem.len()..].parse().ok()?;
    let to = last.strip_prefix(stem)?.parse().ok()?;
    (from <= to).then_some((stem, from, to))
}
