//! What a drive is told to do, and what it tells. Invariant: a command goes to one die, and its pages are of one request.

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    Read,
    Program,
}

/// A page, or a page of each of several planes in one cell time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCommand {
    pub kind: CommandKind,
    pub channel: u8,
    /// The die of the channel.
    pub die: u8,
    pub pages: u8,
}

/// What occupies a die without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundStep {
    pub channel: u8,
    pub die: u8,
    pub duration_ns: u64,
}

/// What happened in a step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOutcome {
    pub channel: u8,
    /// The request that ended.
    pub ended: Option<u32>,
}
