//! A volume under measurement: the file system on its chip, the chip's clock as its time, and the longest wait of a
//! call. Invariant: every call that a workload makes goes through `call`, so none is left out of the longest wait.

use emulator::Chip;
use flexfs_core::{Attr, Error, FormatOptions, Fs, Ino, MountOptions, NewNode, ROOT_INO, kind};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bench_chip::BenchChip;
use super::step::Step;
use super::waits::{Distribution, Waits};
use super::{BenchError, Config, DieLoad, OPERATIONS_PER_IDLE, Report, Workload};
use crate::processor_time::{ProcessorSeconds, ProcessorTime};
use torture::content::mix;
use torture::crash::{BASE_NS, Emulated};

/// Bytes of the pool that data is cut from.
const POOL_BYTES: usize = 4 << 20;

/// The longest piece that can be cut from it.
pub const PIECE_BYTES: usize = 1 << 20;

/// Incompressible bytes, cheap to have: pieces of one random pool, each from another byte offset.
pub struct Pool(Vec<u8>);

impl Pool {
    pub fn new(seed: u64) -> Self {
        let mut bytes = vec![0; POOL_BYTES];
        ChaCha8Rng::seed_from_u64(seed).fill(&mut bytes[..]);
        Self(bytes)
    }

    /// The piece of that number.
    pub fn piece(&self, number: u64, len: usize) -> &[u8] {
        let start = (mix(number) % (POOL_BYTES - PIECE_BYTES) as u64) as usize;
        &self.0[start..start + len]
    }
}

/// A mounted volume and the clocks on it.
pub struct Volume<N: Emulated> {
    pub fs: Fs<N>,
    worst_op_ns: u64,
    cpu: ProcessorTime,
    idle_ns: Option<u64>,
    /// When the next call comes, if a background step went on past that time.
    arrival_ns: Option<u64>,
    /// What the operation under way has waited so far.
    operation_ns: u64,
    operations: Waits,
    steps: Waits,
}

/// The chip a configuration asks for.
pub fn chip(workload: Workload, config: &Config) -> Result<Chip, BenchError> {
    let bytes = config.bytes.unwrap_or(workload.default_bytes());
    let profile = config.profile.with_capacity(bytes)?;
    Ok(Chip::new(&profile, config.seed)?)
}

/// Formats a chip.
pub fn format<N: Emulated>(chip: &mut N, config: &Config) -> Result<(), BenchError> {
    let mut volume_id = [0; 16];
    volume_id[..8].copy_from_slice(&mix(config.seed).to_le_bytes());
    let now_ns = BASE_NS + chip.emulated().now_ns() as i64;
    let label = "bench".into();
    let options = FormatOptions { volume_id, label, blank: true, now_ns, ..FormatOptions::default() };
    Fs::format(chip, &options).map_err(|source| BenchError::Fs { doing: "formatting", source })
}

impl<N: Emulated> Volume<N> {
    /// Mounts a chip.
    pub fn mount(chip: N, config: &Config) -> Result<Self, BenchError> {
        Self::mount_as(chip, config, false)
    }

    /// Mounts a chip, to read from it alone if `read_only`.
    pub fn mount_as(chip: N, config: &Config, read_only: bool) -> Result<Self, BenchError> {
        let options = MountOptions {
            policy: config.policy,
            compression: config.compression,
            cache_bytes: config.cache_bytes,
            lanes: config.lanes,
            read_only,
            now_ns: BASE_NS + chip.emulated().now_ns() as i64,
            ..MountOptions::default()
        };
        let fs = Fs::mount(chip, options).map_err(|(_, source)| BenchError::Fs { doing: "mounting", source })?;
        Ok(Self {
            fs,
            worst_op_ns: 0,
            cpu: ProcessorTime::now(),
            idle_ns: config.idle_ns,
            arrival_ns: None,
            operation_ns: 0,
            operations: Waits::default(),
            steps: Waits::default(),
        })
    }

    /// Makes one call and notes how long it waited for the chip.
    pub fn call<T>(
        &mut self,
        doing: &'static str,
        call: impl FnOnce(&mut Fs<N>, i64) -> Result<T, Error>,
    ) -> Result<T, BenchError> {
        let before = self.arrival_ns.take().unwrap_or(self.now_ns());
        self.fs.request(before as i64);
        let result = call(&mut self.fs, BASE_NS + before as i64);
        let waited_ns = self.now_ns() - before;
        self.worst_op_ns = self.worst_op_ns.max(waited_ns);
        self.operation_ns += waited_ns;
        result.map_err(|source| BenchError::Fs { doing, source })
    }

    fn now_ns(&self) -> u64 {
        self.fs.chip().emulated().now_ns()
    }

    /// Ends an operation of the workload; idle time may follow.
    pub fn end_operation(&mut self) -> Result<(), BenchError> {
        self.operations.add(std::mem::take(&mut self.operation_ns));
        match self.idle_ns {
            Some(idle_ns) if self.operations.count().is_multiple_of(OPERATIONS_PER_IDLE) => self.rest(idle_ns),
            _ => Ok(()),
        }
    }

    /// Lets so much time pass, with background steps as a mount takes them.
    fn rest(&mut self, idle_ns: u64) -> Result<(), BenchError> {
        let end_ns = self.now_ns() + idle_ns;
        let mut next_ns = Some(self.now_ns());
        while let Some(at_ns) = next_ns.filter(|&at_ns| at_ns < end_ns) {
            self.fs.chip_mut().emulated_mut().advance_to_ns(at_ns);
            let before = Step::so_far(self.fs.chip().emulated().counters());
            let next = self.fs.background(at_ns as i64, BASE_NS + at_ns as i64);
            let next = next.map_err(|source| BenchError::Fs { doing: "working in the background", source })?;
            let chip = self.fs.chip().emulated();
            let step = Step::so_far(chip.counters()).since(before);
            step.bounded(chip.profile(), false).map_err(BenchError::Wrong)?;
            let done_ns = self.now_ns();
            if done_ns > at_ns {
                self.steps.add(done_ns - at_ns);
            }
            next_ns = next.map(|next_ns| done_ns.max(next_ns as u64));
        }
        self.fs.chip_mut().emulated_mut().advance_to_ns(end_ns);
        self.arrival_ns = Some(end_ns);
        Ok(())
    }

    /// Makes an empty file in the root directory.
    pub fn create(&mut self, name: &str) -> Result<Attr, BenchError> {
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        self.call("creating a file", |fs, now_ns| fs.create(ROOT_INO, name.as_bytes(), node, now_ns))
    }

    /// Writes all of `data`; less is `ENOSPC`.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8]) -> Result<(), BenchError> {
        self.call("writing", |fs, now_ns| {
            let count = fs.write(ino, offset, data, now_ns)?;
            if count < data.len() { Err(Error::NoSpace) } else { Ok(()) }
        })
    }

    pub fn sync(&mut self) -> Result<(), BenchError> {
        self.call("syncing", |fs, _| fs.sync())
    }

    /// A new file with contents, from its creation to its closing.
    pub fn store(&mut self, name: &str, data: &[u8]) -> Result<(), BenchError> {
        let ino = self.create(name)?.ino;
        self.call("opening a file", |fs, _| fs.open(ino))?;
        let mut offset = 0;
        for piece in data.chunks(PIECE_BYTES) {
            self.write(ino, offset, piece)?;
            offset += piece.len() as u64;
        }
        self.sync()?;
        self.call("closing a file", |fs, _| fs.release(ino))?;
        self.end_operation()
    }

    /// Unmounts and gives the chip back, with the figures so far.
    pub fn unmount(self) -> Result<(N, Figures), BenchError> {
        let (now_ns, figures, cpu) = (BASE_NS + self.now_ns() as i64, self.figures(), self.cpu);
        let (chip, result) = self.fs.unmount(now_ns);
        result.map_err(|source| BenchError::Fs { doing: "unmounting", source })?;
        Ok((chip, Figures { processor: cpu.taken(), ..figures }))
    }

    /// What it knows beyond its chip's counters.
    pub fn figures(&self) -> Figures {
        Figures {
            worst_op_ns: self.worst_op_ns,
            processor: self.cpu.taken(),
            operations: self.operations.distribution(),
            steps: self.idle_ns.map(|_| self.steps.distribution()),
        }
    }

    /// Page reads since the chip's counters were reset.
    pub fn reads(&self) -> u64 {
        self.fs.chip().emulated().counters().reads.total()
    }

    /// Compares a stored file with what it should hold.
    pub fn expect(&mut self, name: &str, data: &[u8], buf: &mut Vec<u8>) -> Result<(), BenchError> {
        let ino = self.call("looking up a file", |fs, _| fs.lookup(ROOT_INO, name.as_bytes()))?.ino;
        buf.resize(data.len() + 1, 0);
        let count = self.call("reading back", |fs, _| fs.read(ino, 0, buf))?;
        match buf[..count].iter().zip(data).position(|(found, expected)| found != expected) {
            Some(at) => Err(BenchError::Wrong(format!("{name}: byte {at} is not what was written"))),
            None if count != data.len() => {
                Err(BenchError::Wrong(format!("{name}: {count} bytes instead of {}", data.len())))
            }
            None => Ok(()),
        }
    }

    /// Lets the volume check itself.
    pub fn check(&mut self) -> Result<(), BenchError> {
        let report = self.call("checking", |fs, _| fs.check())?;
        match report.findings.first() {
            None => Ok(()),
            Some(first) => Err(BenchError::Wrong(format!("the check found: {first}"))),
        }
    }
}

/// What a volume knows beyond its chip's counters.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub worst_op_ns: u64,
    pub processor: ProcessorSeconds,
    pub operations: Distribution,
    /// `None`: there was no idle time.
    pub steps: Option<Distribution>,
}

/// The report of what a chip has counted.
pub fn report<N: BenchChip>(workload: Workload, config: &Config, on: &N, figures: Figures, host_bytes: u64) -> Report {
    let chip = on.emulated();
    let counters = chip.counters();
    let amplification = if host_bytes == 0 { 0.0 } else { counters.programmed_bytes as f64 / host_bytes as f64 };
    Report {
        workload: workload.name(),
        chip: config.profile.name.clone(),
        chip_bytes: chip.profile().capacity_bytes(),
        mode: config.policy.to_string(),
        host_bytes,
        programs: counters.programs.total(),
        reads: counters.reads.total(),
        erases: counters.erases.total(),
        used_units: (0..chip.profile().geometry.blocks).map(|block| u64::from(chip.next_unit(block))).sum(),
        write_amplification: amplification,
        flash_s: counters.flash_ns as f64 / 1e9,
        elapsed_s: chip.elapsed_ns() as f64 / 1e9,
        dies: DieLoad::of(chip),
        drive: on.drive_load(),
        worst_op_us: figures.worst_op_ns as f64 / 1e3,
        cpu_s: figures.processor.total_s(),
        user_s: figures.processor.user_s,
        system_s: figures.processor.system_s,
        operations: workload.has_idle().then_some(figures.operations),
        steps: figures.steps,
        ..Report::default()
    }
}

impl<N: Emulated> Volume<N> {
    /// Forgets what was counted so far.
    pub fn start_counting(&mut self) {
        self.fs.chip_mut().emulated_mut().reset_counters();
        (self.worst_op_ns, self.operation_ns) = (0, 0);
        (self.operations, self.steps) = (Waits::default(), Waits::default());
        self.cpu = ProcessorTime::now();
    }
}
