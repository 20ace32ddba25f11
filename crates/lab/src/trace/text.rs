//! FlexFS's own traces: a line of JSON that says what it is and in which unit its times are, then one for each request.
//! Invariant: what is written reads back as the same trace.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{Op, ROOT, Request, TimeUnit, Trace, TraceError, wrong_path, wrong_range, wrong_transfer};

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    flexfs_trace: u32,
    time_unit: TimeUnit,
    /// How long it lasts; without it, until the last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lasts: Option<u64>,
    /// Files that must be there before, and their lengths, bytes.
    #[serde(default)]
    before: Vec<(String, u64)>,
}

const VERSION: u32 = 1;

/// A request.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: u64,
    op: Name,
    file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Read,
    Write,
    Sync,
    Make,
    MakeDir,
    Truncate,
    Rename,
    Exchange,
    Link,
    Symlink,
    Punch,
    Allocate,
    Attributes,
    Remove,
}

impl Line {
    fn of(request: &Request) -> Self {
        let Request { at_ns: at, file, op } = request;
        let line = |op| Self { at: *at, op, file: file.clone(), offset: None, bytes: None, to: None, target: None };
        let range = |op, offset, bytes| Self { offset: Some(offset), bytes: Some(bytes), ..line(op) };
        let named = |op, to| Self { to: Some(to), ..line(op) };
        match op.clone() {
            Op::Read { offset, bytes } => range(Name::Read, offset, bytes),
            Op::Write { offset, bytes } => range(Name::Write, offset, bytes),
            Op::Punch { offset, bytes } => range(Name::Punch, offset, bytes),
            Op::Allocate { offset, bytes } => range(Name::Allocate, offset, bytes),
            Op::Rename { to } => named(Name::Rename, to),
            Op::Exchange { to } => named(Name::Exchange, to),
            Op::Link { to } => named(Name::Link, to),
            Op::Symlink { target } => Self { target: Some(target), ..line(Name::Symlink) },
            Op::Truncate { bytes } => Self { bytes: Some(bytes), ..line(Name::Truncate) },
            Op::Sync => line(Name::Sync),
            Op::Make => line(Name::Make),
            Op::MakeDir => line(Name::MakeDir),
            Op::Attributes => line(Name::Attributes),
            Op::Remove => line(Name::Remove),
        }
    }

    fn request(self, unit: TimeUnit) -> Result<Request, String> {
        let at_ns = self.at.checked_mul(unit.ns()).ok_or("its time is too large")?;
        let is_root = self.op == Name::Sync && self.file == ROOT;
        let file = if is_root { None } else { Some(&self.file) };
        for path in [file, self.to.as_ref()].into_iter().flatten() {
            wrong_path(path).map_or(Ok(()), |why| Err(format!("{why}: {path:?}")))?;
        }
        let Self { offset, bytes, to, target, .. } = self;
        let op = match (self.op, offset, bytes, to, target) {
            (name, Some(offset), Some(bytes), None, None) => ranged(name, offset, bytes)?,
            (Name::Truncate, None, Some(bytes), None, None) => {
                wrong_range(0, bytes).map_or(Ok(Op::Truncate { bytes }), Err)?
            }
            (name, None, None, Some(to), None) => named(name, to)?,
            (Name::Symlink, None, None, None, Some(target)) => Op::Symlink { target },
            (name, None, None, None, None) => plain(name)?,
            _ => return Err(FIELDS.into()),
        };
        Ok(Request { at_ns, file: self.file, op })
    }
}

/// What each operation needs.
const FIELDS: &str = "offset and bytes are of read, write, punch and allocate, bytes of truncate, to of rename, exchange and \
                      link, target of symlink, and all of theirs must be there";

/// An operation on a part of a file.
fn ranged(name: Name, offset: u64, bytes: u64) -> Result<Op, String> {
    let op = match name {
        Name::Read => Op::Read { offset, bytes },
        Name::Write => Op::Write { offset, bytes },
        Name::Punch => Op::Punch { offset, bytes },
        Name::Allocate => Op::Allocate { offset, bytes },
        _ => return Err(FIELDS.into()),
    };
    let why = match name {
        Name::Read | Name::Write => wrong_transfer(offset, bytes),
        _ => wrong_range(offset, bytes),
    };
    why.map_or(Ok(op), Err)
}

/// An operation with a second name.
fn named(name: Name, to: String) -> Result<Op, String> {
    match name {
        Name::Rename => Ok(Op::Rename { to }),
        Name::Exchange => Ok(Op::Exchange { to }),
        Name::Link => Ok(Op::Link { to }),
        _ => Err(FIELDS.into()),
    }
}

/// An operation that needs nothing but its file.
fn plain(name: Name) -> Result<Op, String> {
    match name {
        Name::Sync => Ok(Op::Sync),
        Name::Make => Ok(Op::Make),
        Name::MakeDir => Ok(Op::MakeDir),
        Name::Attributes => Ok(Op::Attributes),
        Name::Remove => Ok(Op::Remove),
        _ => Err(FIELDS.into()),
    }
}

/// Writes a trace.
///
/// # Errors
/// What the writer gives.
pub fn write(trace: &Trace, to: &mut impl Write) -> io::Result<()> {
    write_head(Some(trace.lasts_ns), trace.before.clone(), to)?;
    trace.requests.iter().try_for_each(|request| write_request(request, to))
}

/// Writes the first line. Without a time that the trace lasts it ends with its last request.
pub(super) fn write_head(lasts: Option<u64>, before: Vec<(String, u64)>, to: &mut impl Write) -> io::Result<()> {
    let head = Head { flexfs_trace: VERSION, time_unit: TimeUnit::Ns, lasts, before };
    writeln!(to, "{}", serde_json::to_string(&head)?)
}

pub(super) fn write_request(request: &Request, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "{}", serde_json::to_string(&Line::of(request))?)
}

/// What a reader of JSON says of a line, without the place in it.
pub(super) fn json_reason(error: serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

pub(super) fn read<'a>(mut lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    let Some((line, first)) = lines.next() else { return Ok(Trace::default()) };
    let wrong = |line, reason: String| TraceError { line, reason };
    let head: Head = serde_json::from_str(first).map_err(|error| wrong(line, json_reason(error)))?;
    if head.flexfs_trace != VERSION {
        return Err(wrong(line, format!("version {} of traces, and not {VERSION}", head.flexfs_trace)));
    }
    for (path, bytes) in &head.before {
        let why = wrong_path(path).map(str::to_owned).or_else(|| wrong_range(0, *bytes));
        why.map_or(Ok(()), |why| Err(wrong(line, format!("before, {path:?}: {why}"))))?;
    }
    let (mut requests, mut last_ns) = (Vec::new(), 0);
    for (line, text) in lines {
        let parsed: Line = serde_json::from_str(text).map_err(|error| wrong(line, json_reason(error)))?;
        let request = parsed.request(head.time_unit).map_err(|reason| wrong(line, reason))?;
        if request.at_ns < last_ns {
            return Err(wrong(
                line,
                format!("its time is before that of the line above: {} ns", last_ns - request.at_ns),
            ));
        }
        last_ns = request.at_ns;
        requests.push(request);
    }
    let lasts_ns = head.lasts.map_or(Some(last_ns), |lasts| lasts.checked_mul(head.time_unit.ns()));
    let lasts_ns = lasts_ns.filter(|&lasts_ns| lasts_ns >= last_ns);
    let lasts_ns = lasts_ns.ok_or_else(|| wrong(line, "it lasts less than until its last request".into()))?;
    Ok(Trace { before: head.before, requests, lasts_ns })
}

#[cfg(test)]
mod tests {
    use super::super::phone;
    use super::*;

    #[test]
    fn a_trace_reads_back_as_it_was_written() {
        let mut trace = phone::trace(3);
        let to = || "a/b".to_owned();
        let others = [
            Op::Make,
            Op::MakeDir,
            Op::Truncate { bytes: 9 },
            Op::Rename { to: to() },
            Op::Exchange { to: to() },
            Op::Link { to: to() },
            Op::Symlink { target: "../x".into() },
            Op::Punch { offset: 1, bytes: 2 },
            Op::Allocate { offset: 3, bytes: 4 },
            Op::Attributes,
            Op::Remove,
        ];
        let at_ns = trace.lasts_ns;
        trace.requests.extend(others.map(|op| Request { at_ns, file: "d/ä \"x".into(), op }));
        trace.requests.push(Request { at_ns, file: ROOT.into(), op: Op::Sync });
        let mut bytes = Vec::new();
        write(&trace, &mut bytes).unwrap();
        assert_eq!(super::super::read(&bytes), Ok(trace));
    }

    #[test]
    fn times_are_in_the_unit_that_the_first_line_says() {
        let text = "{\"flexfs_trace\":1,\"time_unit\":\"ms\"}\n{\"at\":5,\"op\":\"sync\",\"file\":\"a\"}\n";
        let trace = super::super::read(text.as_bytes()).unwrap();
        assert_eq!((trace.requests[0].at_ns, trace.lasts_ns), (5_000_000, 5_000_000));
    }
}
