//! The same server over plain memory, to measure what a translation layer costs beside it:
//!
//!   cargo run --release -p card --example plain_memory -- unix:memory.sock 64000000
use std::error::Error;
use std::sync::Arc;

use card::client::ExportOffer;
use card::{CardServer, ClientLimits, Disk, Export, ListenAddress, ServedDevice};
use ftl::{BlockDevice, Result};

const SECTOR_BYTES: usize = 512;

/// Sectors in memory, one behind the other.
struct PlainMemory(Vec<u8>);

impl PlainMemory {
    fn range(&mut self, sector: u64, bytes: usize) -> &mut [u8] {
        let from = sector as usize * SECTOR_BYTES;
        &mut self.0[from..from + bytes]
    }
}

impl BlockDevice for PlainMemory {
    fn sector_bytes(&self) -> usize {
        SECTOR_BYTES
    }

    fn sectors(&self) -> u64 {
        (self.0.len() / SECTOR_BYTES) as u64
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        data.copy_from_slice(self.range(sector, data.len()));
        Ok(())
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        self.range(sector, data.len()).copy_from_slice(data);
        Ok(())
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        self.range(sector, count as usize * SECTOR_BYTES).fill(0);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl ServedDevice for PlainMemory {
    fn reopen(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> std::result::Result<(), String> {
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let at: ListenAddress = args.next().ok_or("name an address")?.parse()?;
    let bytes: usize = args.next().ok_or("name a size in bytes")?.parse()?;
    let memory = PlainMemory(vec![0; bytes / SECTOR_BYTES * SECTOR_BYTES]);
    let disk: Arc<dyn Disk> = Arc::new(Export::new(memory, 0, false, None));
    let offer = ExportOffer { name: "memory".into(), description: "plain memory".into(), shape: disk.shape() };
    let server = CardServer::bind(&at, offer, ClientLimits::default())?;
    println!("{}", server.uri());
    server.run(&disk, &|| true, &|error| eprintln!("{error}"))?;
    Ok(())
}
