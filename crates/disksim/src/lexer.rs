//! Words, numbers and symbols of DiskSim's parameter language (libparam).

use headstack_workload::InputError;

/// A token; words borrow their text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Integer(i64),
    Float(f64),
    /// Text that is neither a number nor contains a symbol, such as `2nd`, `Add.`, `1e5` or `(in`.
    Word(&'t str),
    /// One of the symbols `{ } [ ] , = ; : ?`.
    Symbol(char),
    /// The separate token `..`.
    Range,
}

impl Token<'_> {
    /// Formats the token for an error message.
    pub(super) fn describe(self) -> String {
        match self {
            Token::Integer(value) => format!("`{value}`"),
            Token::Float(value) => format!("`{value:?}`"),
            Token::Word(word) => format!("`{}`", shortened(word)),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::Range => "`..`".to_owned(),
        }
    }
}

/// Shortens a text to at most 60 characters, so that an error message fits on one line.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Splits `text` into tokens with their line numbers, counted from 1.
///
/// # Errors
/// If a number is out of range.
pub(super) fn tokens<'t>(file: &str, text: &'t str) -> Result<Vec<(Token<'t>, usize)>, InputError> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        for run in code.split_whitespace() {
            for piece in pieces(run) {
                let token = classify(piece).map_err(|message| InputError {
                    file: file.to_owned(),
                    line: Some(index + 1),
                    key: shortened(piece),
                    message,
                })?;
                tokens.push((token, index + 1));
            }
        }
    }
    Ok(tokens)
}

fn is_symbol(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | ',' | '=' | ';' | ':' | '?')
}

/// Splits a run of characters without blanks into symbols and the text between them.
fn pieces(run: &str) -> impl Iterator<Item = &str> {
    run.split_inclusive(is_symbol).flat_map(|part| {
        let symbol_start = part.trim_end_matches(is_symbol).len();
        let (before, symbol) = part.split_at(symbol_start);
        [before, symbol].into_iter().filter(|s| !s.is_empty())
    })
}

fn classify(piece: &str) -> Result<Token<'_>, String> {
    if let Some(symbol) = piece.chars().next().filter(|&c| is_symbol(c)) {
        return Ok(Token::Symbol(symbol));
    }
    if piece == ".." {
        return Ok(Token::Range);
    }
    let unsigned = piece.strip_prefix('-').unwrap_or(piece);
    if let Some(digits) = unsigned.strip_prefix("0x")
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
    {
        let sign = if unsigned.len() < piece.len() { "-" } else { "" };
        return integer(&format!("{sign}{digits}"), 16);
    }
    if is_digits(unsigned) {
        return integer(piece, 10);
    }
    if is_float(unsigned) {
        return match piece.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Token::Float(value)),
            _ => Err(format!("the number is too large; the maximum is {:e}", f64::MAX)),
        };
    }
    Ok(Token::Word(piece))
}

fn integer<'t>(text: &str, radix: u32) -> Result<Token<'t>, String> {
    i64::from_str_radix(text, radix)
        .map(Token::Integer)
        .map_err(|_| format!("the integer is too large; allowed: {} to {}", i64::MIN, i64::MAX))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether the text is a float for DiskSim's lexer: digits on both sides of the point, and an exponent only with a
/// sign.
fn is_float(unsigned: &str) -> bool {
    let Some((whole, rest)) = unsigned.split_once('.') else {
        return false;
    };
    let (fraction, exponent) = rest.split_once('e').map_or((rest, None), |(f, e)| (f, Some(e)));
    let exponent_fits = exponent.is_none_or(|e| e.strip_prefix(['+', '-']).is_some_and(is_digits));
    is_digits(whole) && is_digits(fraction) && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Token<'_>> {
        tokens("t", text).unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn numbers_are_integers_floats_or_words() {
        use Token::{Float, Integer, Word};
        assert_eq!(kinds("12 -7 0x1F -0x10"), [Integer(12), Integer(-7), Integer(31), Integer(-16)]);
        assert_eq!(kinds("1.5 -0.25 2.0e+3 2.0e-3"), [Float(1.5), Float(-0.25), Float(2e3), Float(2e-3)]);
        let words = ["1e5", ".5", "5.", "1.0e5", "2nd", "0x", "-", "Add.", "(in", "a..b"];
        assert_eq!(kinds(&words.join(" ")), words.map(Word));
    }

    #[test]
    fn symbols_split_words_and_comments_end_lines() {
        use Token::{Integer, Range, Symbol, Word};
        assert_eq!(
            kinds("a=[b1 .. b2],{} # not [ this\n;9"),
            [
                Word("a"),
                Symbol('='),
                Symbol('['),
                Word("b1"),
                Range,
                Word("b2"),
                Symbol(']'),
                Symbol(','),
                Symbol('{'),
                Symbol('}'),
                Symbol(';'),
                Integer(9)
            ]
        );
        let lines: Vec<usize> = tokens("t", "a\r\n\r\nb # c\nd").unwrap().iter().map(|t| t.1).collect();
        assert_eq!(lines, [1, 3, 4]);
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_with_their_line() {
        let error = tokens("t", "a\n99999999999999999999").unwrap_err();
        assert_eq!((error.line, error.key.as_str()), (Some(2), "99999999999999999999"));
        assert!(tokens("t", "1.0e+999").unwrap_err().message.contains("too large"));
    }
}
