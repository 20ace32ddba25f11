//! What goes to the terminal: results on standard output, complaints on standard error.
//!
//! Invariant: escape codes appear only where a terminal shows them (and `NO_COLOR` is not set), and a reader of
//! our output that goes away early is no error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::Result;

/// One line about what went wrong.
pub fn complain(line: &str) {
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let name = if coloured { "\u{1b}[1;31mflexfs\u{1b}[0m" } else { "flexfs" };
    // Where standard error is closed there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{name}: {}", line.replace('\n', " "));
}

/// A result, with a line end after it.
pub fn say(text: &str) -> Result<()> {
    match writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Rows of a name and a value, values below each other.
pub fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
    lines.join("\n")
}

/// Thousands apart: 1,048,576.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(grouped(123_456), "123,456");
    }

    #[test]
    fn values_stand_below_each_other() {
        assert_eq!(table(&[("a", "1".into()), ("long", "2".into())]), "a     1\nlong  2");
    }
}
