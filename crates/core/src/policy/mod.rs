//! Policies: plain values that decide where data goes and what is moved. No I/O.

pub mod victim;
pub mod wear;

/// Which regions a volume writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// FlexFS §3.2: write to SLC blocks, migrate to native ones when free blocks run out.
    #[default]
    Baseline,
    /// Only SLC blocks: the speed of SLC, a fraction of the capacity.
    SlcOnly,
    /// Native blocks for all but small syncs: the capacity, and the speed, of the native cell.
    NativeOnly,
}

impl Mode {
    /// Whether callers' data goes to native blocks.
    pub fn writes_native(self) -> bool {
        self == Mode::NativeOnly
    }

    /// Whether what is relocated goes to native blocks.
    pub fn relocates_to_native(self) -> bool {
        self != Mode::SlcOnly
    }

    /// Its name on a command line (`mlc-only` is accepted for `native-only`).
    pub fn name(self) -> &'static str {
        match self {
            Mode::Baseline => "baseline",
            Mode::SlcOnly => "slc-only",
            Mode::NativeOnly => "mlc-only",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "baseline" => Some(Mode::Baseline),
            "slc-only" => Some(Mode::SlcOnly),
            "mlc-only" | "native-only" => Some(Mode::NativeOnly),
            _ => None,
        }
    }
}
