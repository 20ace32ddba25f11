//! A FAT12 volume as a host writes it: two copies of the table, a root directory, files in clusters.
//!
//! Invariant: a file's clusters belong to no other; a write of an entry of the table writes its sector in both copies.

use super::{Requests, SECTORS};

/// Sectors of a cluster: 4 KiB, as cards of 16 MB are formatted.
pub const CLUSTER_SECTORS: u64 = 8;
/// Sectors of one copy of the table: 12 bits a cluster.
const TABLE_SECTORS: u64 = 12;
const ENTRIES_PER_TABLE_SECTOR: u64 = 512 * 2 / 3;
const ROOT_SECTORS: u64 = 32;
const ENTRIES_PER_ROOT_SECTOR: u64 = 16;
const DATA_SECTOR: u64 = 1 + 2 * TABLE_SECTORS + ROOT_SECTORS;
const CLUSTERS: u64 = (SECTORS - DATA_SECTOR) / CLUSTER_SECTORS;

/// A file: its directory entry, and its clusters in order.
pub struct File {
    entry: u64,
    clusters: Vec<u64>,
}

/// What is in use on a volume.
pub struct Fat {
    used: Vec<bool>,
    /// The cluster after the last that was given out: where the search for the next begins.
    next: u64,
    entries: Vec<bool>,
}

/// How a file's bytes reach the card.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Sectors of a write at most.
    pub request_sectors: u64,
    /// The table is written after so many of them, and at the end.
    pub table_every: u64,
}

impl Fat {
    pub fn new() -> Self {
        Self {
            used: vec![false; CLUSTERS as usize],
            next: 0,
            entries: vec![false; (ROOT_SECTORS * ENTRIES_PER_ROOT_SECTOR) as usize],
        }
    }

    /// Clusters that are free.
    pub fn free_clusters(&self) -> u64 {
        self.used.iter().filter(|&&used| !used).count() as u64
    }

    /// Writes a new file of so many sectors: its clusters as they are found, the table now and then, at the end its directory
    /// entry. `None`, and nothing is written, where it does not fit.
    pub fn write(&mut self, sectors: u64, manner: Manner, out: &mut Requests) -> Option<File> {
        let count = sectors.div_ceil(CLUSTER_SECTORS);
        let entry = self.entries.iter().position(|&used| !used)? as u64;
        if self.free_clusters() < count {
            return None;
        }
        let clusters: Vec<u64> = (0..count).filter_map(|_| self.take()).collect();
        let mut written = 0;
        for run in runs(&clusters) {
            let sectors = run.len() as u64 * CLUSTER_SECTORS;
            let first = run.first().copied().unwrap_or(0);
            for at in (0..sectors).step_by(manner.request_sectors as usize) {
                out.write(sector_of(first) + at, manner.request_sectors.min(sectors - at));
                written += 1;
                if written % manner.table_every == 0 {
                    write_table(&[first + at / CLUSTER_SECTORS], out);
                }
            }
        }
        write_table(clusters.last().map_or(&[], std::slice::from_ref), out);
        self.entries[entry as usize] = true;
        write_entry(entry, out);
        Some(File { entry, clusters })
    }

    /// Writes a file's sectors again in place, and its directory entry with the new time.
    pub fn overwrite(&self, file: &File, sectors: u64, manner: Manner, out: &mut Requests) {
        let clusters = &file.clusters[..file.clusters.len().min(sectors.div_ceil(CLUSTER_SECTORS) as usize)];
        for run in runs(clusters) {
            let sectors = sectors.min(run.len() as u64 * CLUSTER_SECTORS);
            let first = run.first().copied().unwrap_or(0);
            for at in (0..sectors).step_by(manner.request_sectors as usize) {
                out.write(sector_of(first) + at, manner.request_sectors.min(sectors - at));
            }
        }
        write_entry(file.entry, out);
    }

    /// Reads a file from end to end.
    pub fn read(&self, file: &File, request_sectors: u64, out: &mut Requests) {
        for run in runs(&file.clusters) {
            let sectors = run.len() as u64 * CLUSTER_SECTORS;
            for at in (0..sectors).step_by(request_sectors as usize) {
                out.read(sector_of(run.first().copied().unwrap_or(0)) + at, request_sectors.min(sectors - at));
            }
        }
    }

    /// Removes a file: its directory entry first, then the sectors of the table that its clusters have entries in.
    pub fn remove(&mut self, file: File, out: &mut Requests) {
        self.entries[file.entry as usize] = false;
        write_entry(file.entry, out);
        file.clusters.iter().for_each(|&cluster| self.used[cluster as usize] = false);
        write_table(&file.clusters, out);
    }

    /// The next free cluster.
    fn take(&mut self) -> Option<u64> {
        let found =
            (0..CLUSTERS).map(|step| (self.next + step) % CLUSTERS).find(|&cluster| !self.used[cluster as usize])?;
        self.used[found as usize] = true;
        self.next = found + 1;
        Some(found)
    }
}

fn sector_of(cluster: u64) -> u64 {
    DATA_SECTOR + cluster * CLUSTER_SECTORS
}

/// Clusters that lie behind each other.
fn runs(clusters: &[u64]) -> impl Iterator<Item = &[u64]> {
    clusters.chunk_by(|one, other| one + 1 == *other)
}

/// Writes the sectors of the table that have these clusters' entries, in both copies.
fn write_table(clusters: &[u64], out: &mut Requests) {
    let mut sectors: Vec<u64> = clusters.iter().map(|cluster| cluster / ENTRIES_PER_TABLE_SECTOR).collect();
    sectors.sort_unstable();
    sectors.dedup();
    for sector in sectors {
        out.write(1 + sector, 1);
        out.write(1 + TABLE_SECTORS + sector, 1);
    }
}

fn write_entry(entry: u64, out: &mut Requests) {
    out.write(1 + 2 * TABLE_SECTORS + entry / ENTRIES_PER_ROOT_SECTOR, 1);
}
