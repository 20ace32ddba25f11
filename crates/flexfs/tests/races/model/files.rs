//! What calls do to what a name leads to, and to an open file.
//!
//! Invariant: between two steps of one call others may do anything, so each looks again at all but what it has found.

use std::collections::BTreeMap;

use rustix::io::Errno;

use super::{Id, Result, State, Step, Thread, What};
use crate::op::{Before, Kind, Op, Outcome, Place, RECORD_BYTES};

impl State {
    pub(super) fn open(
        &mut self,
        thread: usize,
        at: &Place,
        (create, truncate): (bool, bool),
        new: Id,
    ) -> Result<Step> {
        if let Some(id) = self.threads[thread].found {
            self.resize(id, 0);
            return Ok(Step::End(Outcome::Done));
        }
        let id = match self.find(thread, at) {
            Err(Errno::NOENT) if create => {
                let dir = self.threads[thread].dirs[0].unwrap_or_default();
                self.make(dir, at.name, What::File { size: 0, records: BTreeMap::new() }, new)?;
                self.threads[thread].file = Some(new);
                return Ok(Step::End(Outcome::Done));
            }
            found => found?,
        };
        match self.kind(id) {
            Kind::File => self.threads[thread].file = Some(id),
            Kind::Dir => return Err(Errno::ISDIR),
            Kind::Link => return Err(Errno::LOOP),
        }
        Ok(if truncate { Step::On } else { Step::End(Outcome::Done) })
    }

    /// Finds, and then, if it is a file, looks how large it is.
    pub(super) fn stat(&mut self, thread: usize, at: &Place) -> Result<Step> {
        if let Some(id) = self.threads[thread].found {
            return Ok(Step::End(Outcome::Size(self.size(id))));
        }
        let id = self.find(thread, at)?;
        Ok(match self.kind(id) {
            Kind::File => Step::On,
            kind => Step::End(Outcome::Kind(kind)),
        })
    }

    pub(super) fn attribute(&mut self, thread: usize, at: &Place, op: &Op) -> Result<Step> {
        let Some(id) = self.threads[thread].found else {
            let id = self.find(thread, at)?;
            // Links have no attributes of users.
            return match op {
                _ if self.kind(id) != Kind::Link => Ok(Step::On),
                Op::GetAttribute(_) => Err(Errno::NODATA),
                _ => Err(Errno::PERM),
            };
        };
        let attribute = &mut self.node(id).attribute;
        match (op, *attribute) {
            (Op::SetAttribute(_, _, Before::Absent), Some(_)) => return Err(Errno::EXIST),
            (Op::SetAttribute(_, _, Before::Present), None) => return Err(Errno::NODATA),
            (Op::SetAttribute(_, value, _), _) => *attribute = Some(*value),
            (_, None) => return Err(Errno::NODATA),
            (Op::GetAttribute(_), Some(value)) => return Ok(Step::End(Outcome::Value(value))),
            (_, Some(_)) => *attribute = None,
        }
        Ok(Step::End(Outcome::Done))
    }

    fn size(&self, id: Id) -> u32 {
        match self.nodes[&id].what {
            What::File { size, .. } => size,
            _ => 0,
        }
    }

    /// The size that a call would give the very file that another thread is looking at.
    pub fn would_size(&self, thread: usize, op: &Op, looking: usize) -> Option<u32> {
        let looked_at = self.threads[looking].found.or(self.threads[looking].file)?;
        let Thread { found, file, .. } = self.threads[thread];
        let sized = if matches!(op, Op::Open(..)) { found? } else { file? };
        let size = self.size(sized);
        let new = match *op {
            Op::Open(..) => 0,
            Op::Write(offset, _) => size.max(offset + RECORD_BYTES),
            Op::Append(_) => size + RECORD_BYTES,
            Op::Resize(len) => len,
            _ => return None,
        };
        (sized == looked_at).then_some(new)
    }

    /// Whether a thread's open file ends at `offset`, or before.
    pub fn ends_before(&self, thread: usize, offset: u32) -> bool {
        self.threads[thread].file.is_some_and(|file| self.size(file) <= offset)
    }

    fn resize(&mut self, id: Id, len: u32) {
        if let What::File { size, records } = &mut self.node(id).what {
            *size = len;
            records.retain(|offset, _| *offset < len);
        }
    }

    /// Writes a record; a zero is none.
    fn put(&mut self, id: Id, offset: u32, value: u8) {
        if let What::File { records, .. } = &mut self.node(id).what {
            let _ = if value == 0 { records.remove(&offset) } else { records.insert(offset, value) };
        }
    }

    pub(super) fn act_on_file(&mut self, thread: usize, op: &Op) -> Result<Step> {
        let Thread { file, progress, size: seen, .. } = self.threads[thread];
        let id = file.ok_or(Errno::BADF)?;
        let size = self.size(id);
        match *op {
            Op::Write(offset, value) => {
                self.resize(id, size.max(offset + RECORD_BYTES));
                self.put(id, offset, value);
            }
            Op::Append(value) => {
                self.resize(id, size + RECORD_BYTES);
                self.put(id, size, value);
            }
            // A reader sees how large the file is, and then what is there: cut away meanwhile, that is zeros.
            Op::Read(offset) if progress == 0 => {
                self.threads[thread].size = size;
                return Ok(if offset < size { Step::On } else { Step::End(Outcome::End) });
            }
            Op::Read(offset) => {
                let What::File { records, .. } = &self.nodes[&id].what else { return Err(Errno::INVAL) };
                let value = if offset < seen { records.get(&offset).copied().unwrap_or_default() } else { 0 };
                return Ok(Step::End(Outcome::Value(value)));
            }
            Op::Punch(offset) => self.put(id, offset, 0),
            Op::Resize(len) => self.resize(id, len),
            Op::Size => return Ok(Step::End(Outcome::Size(size))),
            _ => {}
        }
        Ok(Step::End(Outcome::Done))
    }
}
