//! `flexfs serve`: a translation layer as a disk for other hosts, over NBD, until a signal.
//!
//! Invariants: with `--memory` and `--read-only` the image stays as it is to the last byte; a request that was accepted is
//! done and answered before the program ends.

mod answers;
mod idle;
mod recording;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use card::client::{ClientError, ExportOffer};
use card::{CardServer, CardVolume, ClientLimits, Disk, Export, ListenAddress};
use emulator::{Chip, Profile};
use ftl::{Options, TooLarge, Volume};

use super::new_layer::{self, NewLayer};
use crate::image::{self, Content};
use crate::interrupt::Interrupt;
use crate::new_image::{self, NewChip};
use crate::translation::described;
use crate::{chips, cli, output, size};

use answers::AskedCard;
use idle::IdleWorker;

/// A volume that is served.
type ServedCard = Export<CardVolume<Chip>>;

/// The name of a card that is in no image.
const NAMELESS: &str = "card";

pub fn run(args: &cli::Serve) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let name = args.image.clone().unwrap_or_else(|| PathBuf::from(NAMELESS));
    check(args)?;
    let (chip, volume) = chip(args, &name)?;
    let recorder = args.record.as_deref().map(|file| recording::begin(file, &chip, &volume)).transpose()?;
    let options = Options { too_large: TooLarge::Split, ..Options::default() };
    let sync: card::SyncChip<Chip> = |chip| chip.sync_image().map_err(|error| error.to_string());
    let device = CardVolume::open(chip, options, sync).map_err(|error| cannot_open(&name, &volume, &error))?;
    let export = Arc::new(ServedCard::new(device, args.cache as usize, args.read_only, recorder));
    let shape = export.shape();
    let described = format!("{} of {}", described(volume.scheme), size::human(shape.bytes));
    let offer = ExportOffer { name: export_name(&name), description: described.clone(), shape };
    let server = bind(&args.listen, offer)?;
    let (uri, clients) = (server.uri(), server.client_counter());
    let asked =
        AskedCard { image: name.clone(), volume, export: Arc::clone(&export), uri, begun: Instant::now(), clients };
    let _monitor = args.image.as_ref().map(|_| asked.answer()).transpose()?;
    let worker = IdleWorker::start(&export, !args.no_idle_merges && !args.read_only)?;
    output::say(&format!("{}: {described}, served at {}; Ctrl-C ends it", name.display(), server.uri()))?;
    let disk: Arc<dyn Disk> = Arc::clone(&export) as _;
    let shown = name.display().to_string();
    let complain = move |error: &ClientError| output::complain(&format!("{shown}: a client was sent away: {error}"));
    let served = server.run(&disk, &|| interrupt.came().is_ok(), &complain);
    worker.end();
    let finished = export.finish().map_err(|error| anyhow!("{}: {error}", name.display()));
    served.with_context(|| format!("{}: no more clients can be let in", args.listen))?;
    finished?;
    Ok(ExitCode::SUCCESS)
}

fn check(args: &cli::Serve) -> Result<()> {
    if args.create.is_none() && args.layer.ftl.is_some() {
        bail!("--ftl is for a card that is made with --create; an image says its scheme itself");
    }
    if !args.listen.is_local() {
        output::complain(&format!(
            "{}: whoever reaches this address can read and write the disk: there is no authentication",
            args.listen
        ));
    }
    Ok(())
}

/// The chip to serve, and the volume on it.
fn chip(args: &cli::Serve, name: &Path) -> Result<(Chip, Volume)> {
    if let (Some(bytes), Some(scheme)) = (args.create, args.layer.ftl) {
        let number = new_layer::volume_number()?;
        let layer = NewLayer { image: name, size_option: "--create", scheme, asked: &args.layer.counts, number };
        let kind = args.profile.clone().map_or_else(|| Profile::builtin(chips::OF_LAYERS), Ok)?;
        let profile = layer.profile(&kind, bytes)?;
        let new = NewChip::unique(&profile)?;
        match &args.image {
            Some(image) if !args.memory => {
                new_image::make_with(image, &new, |chip, _| Ok((layer.on_chip(chip)?.into_chip(), ())))?;
            }
            _ => {
                let mut chip = layer.on_chip(Chip::new(&profile, new.seed)?)?.into_chip();
                let volume = Volume::find(&mut chip).map_err(|error| anyhow!("{}: {error}", name.display()))?;
                return Ok((chip, volume));
            }
        }
    }
    let Some(image) = &args.image else { bail!("name an image, or make a card in memory with --create and --ftl") };
    let stays = args.memory || args.read_only;
    // A first look, for which the image is not changed.
    let layer = match image::probe(image)? {
        Content::Sectors(layer) => layer,
        content => {
            content.into_files(image)?;
            let image = image.display();
            bail!("{image}: it holds a file system, not sectors; `flexfs mount {image} DIR` mounts it");
        }
    };
    let volume = layer.volume().clone();
    if stays {
        return Ok((layer.chip().snapshot(), volume));
    }
    drop(layer);
    Ok((image::open_emulated(image, false)?, volume))
}

fn cannot_open(name: &Path, volume: &Volume, error: &ftl::Error) -> anyhow::Error {
    let (path, layer) = (name.display(), described(volume.scheme));
    anyhow!("{path}: {layer} that cannot be opened: {error}; `flexfs fsck {path}` tells more")
}

/// The name that clients may ask for.
fn export_name(image: &Path) -> String {
    image.file_name().unwrap_or(image.as_os_str()).to_string_lossy().into_owned()
}

fn bind(listen: &ListenAddress, offer: ExportOffer) -> Result<CardServer> {
    CardServer::bind(listen, offer, ClientLimits::default()).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!("{listen}: another server listens there; choose another with --listen"),
        _ => anyhow!("{listen}: {error}"),
    })
}
