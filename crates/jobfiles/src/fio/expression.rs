//! Arithmetic in values: `(4*1k+512)`, and calculations with `$keywords`.

/// Maximum nesting depth of parentheses and signs.
const DEPTH_MAX: u32 = 64;

/// Evaluates an expression with `+ - * / % ^`, parentheses, signs, and numbers with units. `factor` returns the factor
/// of a unit.
pub(super) fn evaluate(text: &str, factor: &dyn Fn(&str) -> Option<u64>) -> Result<f64, String> {
    let mut parser = Parser { text, at: 0, depth: 0, factor };
    let value = parser.sum()?;
    match parser.peek() {
        None if value.is_finite() => Ok(value),
        None => Err(format!("{text:?} has no finite value")),
        Some(found) => Err(format!("{text:?} is invalid at {found:?}")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
    factor: &'t dyn Fn(&str) -> Option<u64>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest.chars().next()
    }

    /// Consumes and returns the next character if it is one of `operators`, which must be ASCII.
    fn take(&mut self, operators: &str) -> Option<char> {
        let found = self.peek().filter(|found| operators.contains(*found))?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take("+-") {
            let right = self.product()?;
            value = if operator == '+' { value + right } else { value - right };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.power()?;
        while let Some(operator) = self.take("*/%") {
            let right = self.power()?;
            if operator != '*' && right == 0.0 {
                return Err(format!("{:?} divides by 0", self.text));
            }
            value = match operator {
                '*' => value * right,
                '/' => value / right,
                _ => value % right,
            };
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, String> {
        let value = self.operand()?;
        if self.take("^").is_none() {
            return Ok(value);
        }
        self.nested(Parser::power).map(|exponent| libm::pow(value, exponent))
    }

    fn operand(&mut self) -> Result<f64, String> {
        if self.take("(").is_some() {
            let value = self.nested(Parser::sum)?;
            return match self.take(")") {
                Some(_) => Ok(value),
                None => Err(format!("{:?} has no closing parenthesis", self.text)),
            };
        }
        match self.take("+-") {
            Some('-') => self.nested(Parser::operand).map(|value| -value),
            Some(_) => self.nested(Parser::operand),
            None => self.number(),
        }
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Result<f64, String>) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("{:?} is nested too deeply; the maximum is {DEPTH_MAX} levels", self.text));
        }
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Result<f64, String> {
        self.peek();
        let rest = &self.text[self.at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let wrong = || format!("{:?} is invalid at {:?}", self.text, &rest[..digits + unit]);
        let value: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let factor = (self.factor)(&rest[digits..digits + unit]).ok_or_else(wrong)?;
        self.at += digits + unit;
        Ok(value * factor as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        evaluate(text, &|unit| match unit {
            "" => Some(1),
            "k" => Some(1024),
            _ => None,
        })
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        for (text, expected) in [
            ("2 + 3 * 4", 14.0),
            ("(2 + 3) * 4", 20.0),
            ("20 - 6 - 4", 10.0),
            ("24 / 4 / 3", 2.0),
            ("23 % 9 * 2", 10.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("2 * 3 ^ 2", 18.0),
            ("-3 - -+4", 1.0),
            ("4k / 8", 512.0),
            ("1.5k", 1536.0),
            ("0 * 7", 0.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_name_the_text_and_the_place() {
        for (text, error) in [
            ("7 / 0", "\"7 / 0\" divides by 0"),
            ("7 % (1 - 1)", "\"7 % (1 - 1)\" divides by 0"),
            ("(1 + 2", "\"(1 + 2\" has no closing parenthesis"),
            ("1 2", "\"1 2\" is invalid at '2'"),
            ("3x", "\"3x\" is invalid at \"3x\""),
            ("1.2.3", "\"1.2.3\" is invalid at \"1.2.3\""),
            ("9 ^ 999", "\"9 ^ 999\" has no finite value"),
        ] {
            assert_eq!(value(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn parentheses_are_nested_up_to_64_levels() {
        let nested = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
        assert_eq!(value(&nested(64)), Ok(1.0));
        assert!(value(&nested(65)).unwrap_err().contains("nested too deep"));
        // Levels that are closed do not count.
        assert_eq!(value(&vec!["(1)"; 100].join("+")), Ok(100.0));
    }
}
