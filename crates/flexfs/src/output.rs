//! What goes to the terminal: results on standard output, complaints on standard error, or, where nobody reads that, to
//! the system log.
//!
//! Invariants: a complaint is one line; escape codes appear only where a terminal shows them (and `NO_COLOR` is not set), and a reader of
//! our output that goes away early is no error.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use crate::{destination, host};

/// Where the system takes lines for its log.
const LOG: &str = "/dev/log";

/// What they are: errors (3) of a daemon (facility 3), as syslog(3) counts.
const LOG_PRIORITY: u32 = 3 * 8 + 3;

static TO_LOG: AtomicBool = AtomicBool::new(false);

/// From now on complaints go to the system log.
pub fn complain_to_log() {
    TO_LOG.store(true, Ordering::Relaxed);
}

/// Whether nothing of what goes to the terminal would end up in a chip image.
pub fn check_streams() -> Result<()> {
    if destination::leads_into_image(io::stderr()) {
        complain_to_log();
        bail!("standard error leads into a chip image; send it elsewhere");
    }
    if destination::leads_into_image(io::stdout()) {
        bail!("standard output leads into a chip image; send it elsewhere");
    }
    Ok(())
}

/// One line about what went wrong.
pub fn complain(line: &str) {
    let line = line.replace('\n', " ");
    if TO_LOG.load(Ordering::Relaxed) {
        // Where no log is kept there is nobody left to tell.
        let _ = log(Path::new(LOG), &line);
        return;
    }
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let name = if coloured { "\u{1b}[1;31mflexfs\u{1b}[0m" } else { "flexfs" };
    // Where standard error is closed there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{name}: {line}");
}

fn log(to: &Path, line: &str) -> io::Result<()> {
    let text = format!("<{LOG_PRIORITY}>flexfs[{}]: {line}", std::process::id());
    let socket = UnixDatagram::unbound()?;
    // Whoever keeps the log may need this program to go on.
    socket.set_nonblocking(true)?;
    socket.send_to(text.as_bytes(), to).map(drop)
}

/// A result, with a line end after it.
pub fn say(text: &str) -> Result<()> {
    match writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(host::told(Path::new("standard output"), &error)),
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

/// What there is any of, in one line: `12 host, 3 gc`.
pub fn listed(counts: impl Iterator<Item = (&'static str, u64)>) -> String {
    let some = counts.filter(|(_, count)| *count > 0);
    let some: Vec<String> =
        some.map(|(name, count)| format!("{} {}", grouped(count), name.replace('_', " "))).collect();
    if some.is_empty() { "none".to_owned() } else { some.join(", ") }
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
    fn a_line_for_the_log_says_who_it_is_from() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let socket = UnixDatagram::bind(&path).unwrap();
        log(&path, "x.img: is gone").unwrap();
        let mut line = [0; 100];
        let count = socket.recv(&mut line).unwrap();
        let expected = format!("<27>flexfs[{}]: x.img: is gone", std::process::id());
        assert_eq!(String::from_utf8_lossy(&line[..count]), expected);
        assert!(log(&dir.path().join("none"), "lost").is_err());
    }

    #[test]
    fn values_stand_below_each_other() {
        assert_eq!(table(&[("a", "1".into()), ("long", "2".into())]), "a     1\nlong  2");
    }
}
