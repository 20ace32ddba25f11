//! A server of a small card in a thread, for the time of a test.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use card::client::ExportOffer;
use card::host::NbdHost;
use card::record::RequestRecorder;
use card::{CardServer, CardVolume, ClientLimits, Disk, Export, ListenAddress};
use emulator::{Chip, Profile};
use ftl::{Device, Format, Options, Scheme, TooLarge};
use nand::{Cause, CellMode, Nand, NandError, NandWrapper};

pub type TestVolume = CardVolume<FullDiskChip>;
pub type TestExport = Export<TestVolume>;

/// A chip whose image stands on a disk that is full for one program.
pub struct FullDiskChip {
    chip: Chip,
    /// Programs until then.
    pub programs_left: Option<u32>,
}

impl NandWrapper for FullDiskChip {
    type Inner = Chip;

    fn inner(&self) -> &Chip {
        &self.chip
    }

    fn inner_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    fn pass_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        if self.programs_left == Some(0) {
            self.programs_left = None;
            return Err(NandError::Medium { what: "writing", errno: 28 });
        }
        self.programs_left = self.programs_left.map(|left| left - 1);
        self.chip.program(block, unit, mode, data, spare, cause)
    }
}

/// A card of 1 MiB with pages of 512 bytes and blocks of 8 pages, and a scheme on it.
pub fn volume(scheme: Scheme) -> TestVolume {
    let mut profile = Profile::builtin("k9f5608u0m").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (256, 8);
    let chip = Chip::new(&profile, 1).unwrap();
    let format = Format { extra_blocks: 40, ..Format::usual(&chip, scheme, 1).unwrap() };
    let device = Device::format(chip, scheme, &format, Options::default()).unwrap();
    let options = Options { too_large: TooLarge::Split, ..Options::default() };
    let chip = FullDiskChip { chip: device.into_chip(), programs_left: None };
    CardVolume::open(chip, options, |_| Ok(())).unwrap()
}

/// A server, until it is dropped.
pub struct TestServer {
    pub export: Arc<TestExport>,
    address: String,
    goes_on: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl TestServer {
    pub fn of(scheme: Scheme) -> Self {
        Self::serve(Export::new(volume(scheme), 0, false, None), ClientLimits::default())
    }

    pub fn recording(scheme: Scheme, recorder: RequestRecorder) -> Self {
        Self::serve(Export::new(volume(scheme), 0, false, Some(recorder)), ClientLimits::default())
    }

    pub fn serve(export: TestExport, limits: ClientLimits) -> Self {
        let export = Arc::new(export);
        let offer = ExportOffer { name: "test".into(), description: "a small card".into(), shape: export.shape() };
        let at = ListenAddress::Tcp { host: "127.0.0.1".into(), port: 0 };
        let server = CardServer::bind(&at, offer, limits).unwrap();
        let address = server.uri().strip_prefix("nbd://").unwrap().to_owned();
        let goes_on = Arc::new(AtomicBool::new(true));
        let (disk, until): (Arc<dyn Disk>, _) = (Arc::clone(&export) as _, Arc::clone(&goes_on));
        let run = move || server.run(&disk, &|| until.load(Ordering::Relaxed), &|_| {});
        Self { export, address, goes_on, thread: Some(thread::spawn(run)) }
    }

    pub fn stream(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    pub fn host(&self, structured: bool) -> NbdHost<TcpStream> {
        NbdHost::connect(self.stream(), "", structured).unwrap()
    }

    /// Ends it as a signal does, and gives the export.
    pub fn end(mut self) -> Arc<TestExport> {
        self.goes_on.store(false, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap();
        self.export.finish().unwrap();
        Arc::clone(&self.export)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.goes_on.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && !thread::panicking()
        {
            thread.join().unwrap().unwrap();
        }
    }
}
