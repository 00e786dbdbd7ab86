//! Splits lines of a table into fields.

/// Number of columns split by the fast method; a table with later columns is split field by field.
pub(super) const COLUMNS_FAST: usize = 16;

/// Separator of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Separator {
    Byte(u8),
    /// Any number of spaces and tabs.
    Blanks,
}

impl Separator {
    /// Returns the fields of a line, without surrounding spaces and quotes.
    pub(super) fn split(self, line: &[u8]) -> Fields<'_> {
        Fields { separator: self, rest: Some(line) }
    }
}

/// Iterator over the remaining fields of a line.
pub(super) struct Fields<'a> {
    separator: Separator,
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (separator, rest) = match self.separator {
            Separator::Byte(byte) => (byte, rest),
            Separator::Blanks => {
                let rest = rest.trim_ascii_start();
                if rest.is_empty() {
                    self.rest = None;
                    return None;
                }
                let end = rest.iter().position(u8::is_ascii_whitespace);
                self.rest = end.map(|end| &rest[end..]);
                return Some(&rest[..end.unwrap_or(rest.len())]);
            }
        };
        let blanks = rest.iter().take_while(|&&byte| byte == b' ').count();
        if let Some(quoted) = rest[blanks..].strip_prefix(b"\"")
            && let Some(end) = memchr::memchr(b'"', quoted)
        {
            let behind = &quoted[end + 1..];
            self.rest = memchr::memchr(separator, behind).map(|at| &behind[at + 1..]);
            return Some(quoted[..end].trim_ascii());
        }
        let end = memchr::memchr(separator, rest);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(rest[..end.unwrap_or(rest.len())].trim_ascii())
    }
}
