//! [`Words`]: the words that a table uses for operations.

use super::values::Values;
use crate::record::Operation;

/// Mapping from words to operations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Words {
    declared: Vec<(String, Operation)>,
    /// Whether the declared words are complete, so that no default words are accepted.
    are_all: bool,
}

/// Keys of a declaration, and their operations.
const KEYS: [(&str, Operation); 5] = [
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("trim", Operation::Trim),
    ("flush", Operation::Flush),
    ("unknown", Operation::Unknown),
];
/// Default words, in any case, unless a file declares others.
const USUAL: [(&str, Operation); 13] = [
    ("r", Operation::Read),
    ("rd", Operation::Read),
    ("read", Operation::Read),
    ("w", Operation::Write),
    ("wr", Operation::Write),
    ("write", Operation::Write),
    ("d", Operation::Trim),
    ("t", Operation::Trim),
    ("trim", Operation::Trim),
    ("discard", Operation::Trim),
    ("unmap", Operation::Trim),
    ("f", Operation::Flush),
    ("flush", Operation::Flush),
];

impl Words {
    pub(super) fn declared(values: &Values) -> Result<Words, String> {
        let words = |(key, operation): (&str, Operation)| -> Vec<(String, Operation)> {
            let words = values.get(key).map_or(Vec::new(), |text| text.split('|').collect());
            words.into_iter().map(|word| (word.trim().to_owned(), operation)).collect()
        };
        let mut declared: Vec<(String, Operation)> = KEYS.into_iter().flat_map(words).collect();
        // If only one of `0` and `1` is declared, the other has the opposite meaning.
        if let [(bit, operation @ (Operation::Read | Operation::Write))] = &declared[..]
            && matches!(bit.as_str(), "0" | "1")
        {
            let other = if bit == "0" { "1" } else { "0" };
            let is_read = *operation == Operation::Read;
            declared.push((other.to_owned(), if is_read { Operation::Write } else { Operation::Read }));
        }
        for (index, (word, operation)) in declared.iter().enumerate() {
            if declared[..index].iter().any(|(before, other)| before == word && other != operation) {
                return Err(format!("read, write: `{word}` must be only one of read and write"));
            }
        }
        let are_all = values.is_file() && !declared.is_empty();
        Ok(Words { declared, are_all })
    }

    /// Returns the operation of a word, declared or default. `0` and `1` have no default, because formats differ.
    #[inline]
    pub(crate) fn operation(&self, word: &[u8]) -> Option<Operation> {
        let declared = self.declared.iter().find(|(known, _)| known.as_bytes() == word);
        if declared.is_some() || self.are_all {
            return declared.map(|(_, operation)| *operation);
        }
        USUAL.into_iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(word)).map(|(_, operation)| operation)
    }

    /// Returns the allowed words, for messages.
    pub(crate) fn title(&self) -> String {
        let declared = self.declared.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(", ");
        if self.are_all {
            return declared.rsplit_once(", ").map_or(declared.clone(), |(first, last)| format!("{first} or {last}"));
        }
        let usual = "R, W, read, write, trim or flush in any case; declare read=WORD and write=WORD";
        if declared.is_empty() { usual.to_owned() } else { format!("{declared}, {usual}") }
    }
}
