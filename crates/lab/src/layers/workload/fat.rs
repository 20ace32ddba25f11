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

/// Sectors of a piece of the directory that is written through: as many as a cluster has.
const ROOT_PIECE_SECTORS: u64 = CLUSTER_SECTORS;

/// How a file's bytes reach the card.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Sectors of a write at most.
    pub request_sectors: u64,
    pub updates: FatUpdates,
}

/// When a new file's entries in table and directory reach the card.
#[derive(Clone, Copy)]
pub enum FatUpdates {
    /// The table after so many writes of data, and at the end; then the directory's entry.
    Back { table_every: u64 },
    /// After each write of data: the table with its clusters, the table with the link to them, and the piece of the
    /// directory that tells the file's new size.
    Through,
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

    /// Writes a new file of so many sectors: its clusters as they are found, and its entries in table and directory. `None`,
    /// and nothing is written, where it does not fit.
    pub fn write(&mut self, sectors: u64, manner: Manner, out: &mut Requests) -> Option<File> {
        let count = sectors.div_ceil(CLUSTER_SECTORS);
        let entry = self.entries.iter().position(|&used| !used)? as u64;
        if self.free_clusters() < count {
            return None;
        }
        let clusters: Vec<u64> = (0..count).filter_map(|_| self.take()).collect();
        let mut linked = None;
        for ((sector, count), number) in requests_of(&clusters, manner.request_sectors).zip(1..) {
            out.write(sector, count);
            let (first, last) = (cluster_of(sector), cluster_of(sector + count - 1));
            match manner.updates {
                FatUpdates::Back { table_every } if number % table_every != 0 => {}
                FatUpdates::Back { .. } => write_table(&[first], out),
                FatUpdates::Through => {
                    write_table(&(first..=last).collect::<Vec<_>>(), out);
                    write_table(linked.as_slice(), out);
                    write_directory(entry, out);
                    linked = Some(last);
                }
            }
        }
        if let FatUpdates::Back { .. } = manner.updates {
            write_table(clusters.last().map_or(&[], std::slice::from_ref), out);
            write_entry(entry, out);
        }
        self.entries[entry as usize] = true;
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
        requests_of(&file.clusters, request_sectors).for_each(|(sector, count)| out.read(sector, count));
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

fn cluster_of(sector: u64) -> u64 {
    (sector - DATA_SECTOR) / CLUSTER_SECTORS
}

/// First sector and number of sectors of each request for clusters, in requests of so many sectors at most.
fn requests_of(clusters: &[u64], request_sectors: u64) -> impl Iterator<Item = (u64, u64)> {
    runs(clusters).flat_map(move |run| {
        let (first, sectors) = (run.first().copied().unwrap_or(0), run.len() as u64 * CLUSTER_SECTORS);
        let starts = (0..sectors).step_by(request_sectors as usize);
        starts.map(move |at| (sector_of(first) + at, request_sectors.min(sectors - at)))
    })
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

/// Writes the piece of the directory that has an entry.
fn write_directory(entry: u64, out: &mut Requests) {
    let piece = entry / (ENTRIES_PER_ROOT_SECTOR * ROOT_PIECE_SECTORS);
    out.write(1 + 2 * TABLE_SECTORS + piece * ROOT_PIECE_SECTORS, ROOT_PIECE_SECTORS);
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    /// The writes of a new file of 72 sectors, in requests of a block.
    fn writes(updates: FatUpdates) -> Vec<(u64, u64)> {
        let (mut fat, mut out) = (Fat::new(), Requests::default());
        fat.write(72, Manner { request_sectors: 32, updates }, &mut out).unwrap();
        let range = |request| match request {
            Request::Write { sector, count } => (sector, count),
            request => panic!("{request:?}"),
        };
        out.all.into_iter().map(|timed| range(timed.request)).collect()
    }

    #[test]
    fn a_file_written_through_has_its_entries_after_each_request() {
        let (data, tables, directory) = (DATA_SECTOR, [(1, 1), (1 + TABLE_SECTORS, 1)], [(25, 8)]);
        let updates = [&tables[..], &tables, &directory].concat();
        // Before the first request there is no cluster to link from.
        let first = [&[(data, 32)], &tables[..], &directory].concat();
        let rest = [[(data + 32, 32)].as_slice(), &updates, &[(data + 64, 8)], &updates].concat();
        assert_eq!(writes(FatUpdates::Through), [first, rest].concat());
    }

    #[test]
    fn a_file_written_back_has_its_directory_entry_at_its_end() {
        let (data, tables) = (DATA_SECTOR, [(1, 1), (1 + TABLE_SECTORS, 1)]);
        let expected = [&[(data, 32), (data + 32, 32)], &tables[..], &[(data + 64, 8)], &tables, &[(25, 1)]].concat();
        assert_eq!(writes(FatUpdates::Back { table_every: 2 }), expected);
    }
}
