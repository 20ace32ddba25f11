//! FlexFS's own traces: a line of JSON that says what it is and in which unit its times are, then one for each request.
//! Invariant: what is written reads back as the same trace.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{Op, Request, Trace, TraceError, wrong_path, wrong_range};

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    flexfs_trace: u32,
    time_unit: Unit,
    /// How long it lasts; without it, until the last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lasts: Option<u64>,
    /// Files that must be there before, and their lengths, bytes.
    #[serde(default)]
    before: Vec<(String, u64)>,
}

const VERSION: u32 = 1;

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Ns,
    Us,
    Ms,
}

impl Unit {
    fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
        }
    }
}

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
    Remove,
}

impl Line {
    fn of(request: &Request) -> Self {
        let Request { at_ns: at, file, op } = request;
        let line = |op| Self { at: *at, op, file: file.clone(), offset: None, bytes: None, to: None };
        match op.clone() {
            Op::Read { offset, bytes } => Self { offset: Some(offset), bytes: Some(bytes), ..line(Name::Read) },
            Op::Write { offset, bytes } => Self { offset: Some(offset), bytes: Some(bytes), ..line(Name::Write) },
            Op::Sync => line(Name::Sync),
            Op::Make => line(Name::Make),
            Op::MakeDir => line(Name::MakeDir),
            Op::Truncate { bytes } => Self { bytes: Some(bytes), ..line(Name::Truncate) },
            Op::Rename { to } => Self { to: Some(to), ..line(Name::Rename) },
            Op::Remove => line(Name::Remove),
        }
    }

    fn request(self, unit: Unit) -> Result<Request, String> {
        let at_ns = self.at.checked_mul(unit.ns()).ok_or("its time is too large")?;
        for path in [Some(&self.file), self.to.as_ref()].into_iter().flatten() {
            wrong_path(path).map_or(Ok(()), |why| Err(format!("{why}: {path:?}")))?;
        }
        let range = |offset: u64, bytes: u64| wrong_range(offset, bytes).map_or(Ok((offset, bytes)), Err);
        let op = match (self.op, self.offset, self.bytes, self.to) {
            (name @ (Name::Read | Name::Write), Some(offset), Some(bytes), None) => {
                let (offset, bytes) = range(offset, bytes)?;
                if name == Name::Read { Op::Read { offset, bytes } } else { Op::Write { offset, bytes } }
            }
            (Name::Truncate, None, Some(bytes), None) => Op::Truncate { bytes: range(0, bytes)?.1 },
            (Name::Rename, None, None, Some(to)) => Op::Rename { to },
            (Name::Sync, None, None, None) => Op::Sync,
            (Name::Make, None, None, None) => Op::Make,
            (Name::MakeDir, None, None, None) => Op::MakeDir,
            (Name::Remove, None, None, None) => Op::Remove,
            _ => {
                return Err("offset and bytes are of read and write, bytes of truncate, to of rename, and all of \
                            theirs must be there"
                    .into());
            }
        };
        Ok(Request { at_ns, file: self.file, op })
    }
}

/// Writes a trace.
///
/// # Errors
/// What the writer gives.
pub fn write(trace: &Trace, to: &mut impl Write) -> io::Result<()> {
    let head =
        Head { flexfs_trace: VERSION, time_unit: Unit::Ns, lasts: Some(trace.lasts_ns), before: trace.before.clone() };
    writeln!(to, "{}", serde_json::to_string(&head)?)?;
    for request in &trace.requests {
        writeln!(to, "{}", serde_json::to_string(&Line::of(request))?)?;
    }
    Ok(())
}

pub(super) fn read<'a>(mut lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, TraceError> {
    let Some((line, first)) = lines.next() else { return Ok(Trace::default()) };
    let wrong = |line, reason: String| TraceError { line, reason };
    let json = |error: serde_json::Error| {
        let text = error.to_string();
        text.rsplit_once(" at line").map_or(text.clone(), |(reason, _)| reason.to_owned())
    };
    let head: Head = serde_json::from_str(first).map_err(|error| wrong(line, json(error)))?;
    if head.flexfs_trace != VERSION {
        return Err(wrong(line, format!("version {} of traces, and not {VERSION}", head.flexfs_trace)));
    }
    for (path, bytes) in &head.before {
        let why = wrong_path(path).map(str::to_owned).or_else(|| wrong_range(0, *bytes));
        why.map_or(Ok(()), |why| Err(wrong(line, format!("before, {path:?}: {why}"))))?;
    }
    let (mut requests, mut last_ns) = (Vec::new(), 0);
    for (line, text) in lines {
        let parsed: Line = serde_json::from_str(text).map_err(|error| wrong(line, json(error)))?;
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
        let others = [Op::Make, Op::MakeDir, Op::Truncate { bytes: 9 }, Op::Rename { to: "a/b".into() }, Op::Remove];
        let at_ns = trace.lasts_ns;
        trace.requests.extend(others.map(|op| Request { at_ns, file: "d/ä \"x".into(), op }));
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
