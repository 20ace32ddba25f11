//! `capacity`: how much of a chip's native bytes a caller gets. Invariant: only files that were written and synced in
//! full count, and each of them is read back.

use flexfs_core::Error;

use super::bench_chip::BenchChip;
use super::volume::{PIECE_BYTES, Pool, Volume, report};
use super::workloads::{FILE_BYTES, file_name, fresh, verify_files};
use super::{BenchError, Capacity, Config, Progress, Report, Workload};

pub fn capacity<N: BenchChip>(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let pool = Pool::new(config.seed);
    let mut chip: N = fresh(Workload::Capacity, config)?;
    chip.emulated_mut().reset_counters();
    let geometry = chip.geometry();
    let good = (0..geometry.blocks).filter(|&block| !chip.is_bad(block)).count() as u64;
    let native_bytes = good * geometry.block_bytes();
    let mut volume = Volume::mount(chip, config)?;
    let mut files = 0;
    loop {
        match volume.store(&file_name(files), pool.piece(files, PIECE_BYTES)) {
            Ok(()) => files += 1,
            Err(BenchError::Fs { source: Error::NoSpace, .. }) => break,
            Err(other) => return Err(other),
        }
        if files * FILE_BYTES > native_bytes {
            return Err(BenchError::Wrong("more was stored than the chip holds".into()));
        }
        progress(files, native_bytes / FILE_BYTES);
    }
    let (chip, figures) = volume.unmount()?;
    verify_files(chip.copy()?, config, &pool, files)?;
    let bytes = files * FILE_BYTES;
    let fraction = bytes as f64 / native_bytes as f64;
    let capacity = Some(Capacity { files, bytes, native_bytes, fraction });
    Ok(Report { capacity, ..report(Workload::Capacity, config, &chip, figures, bytes) })
}
