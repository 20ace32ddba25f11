//! The answers of a served card to `flexfs info`, `top` and `dump`.
//!
//! Invariant: an answer is of one moment, between two requests of clients, which wait meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use ftl::{BlockDevice, Volume};

use super::ServedCard;
use crate::cmd::dump::{KnownUses, ShownLayer};
use crate::monitor::{Form, Monitor, Question};
use crate::translation::FtlFigures;
use crate::translation::live::LiveCard;

/// A card, as those who ask see it.
pub struct AskedCard<C> {
    pub image: PathBuf,
    pub volume: Volume,
    pub export: Arc<ServedCard>,
    pub uri: String,
    pub begun: Instant,
    /// Tells how many clients there are.
    pub clients: C,
}

impl<C: Fn() -> usize + Send + 'static> AskedCard<C> {
    /// Answers questions until what this gives is dropped; where another server answers them already, not at all.
    pub fn answer(self) -> Result<Option<Monitor>> {
        let Ok(mut monitor) = Monitor::of(&self.image) else { return Ok(None) };
        monitor.answer(move |question| self.answered(question)).context("cannot answer questions")?;
        Ok(Some(monitor))
    }

    fn answered(&self, question: Question) -> Option<Vec<u8>> {
        match question {
            Question::Figures(form) => self.figures(form).ok().map(String::into_bytes),
            Question::Structures(form, block) => self.structures(form, block).ok(),
            Question::DiskAddress => Some(self.uri.clone().into_bytes()),
            Question::Mountpoint => None,
        }
    }

    fn figures(&self, form: Form) -> Result<String> {
        self.export.between_requests(|volume, host, _| {
            let device = volume.device()?;
            let live = LiveCard {
                uri: self.uri.clone(),
                clients: (self.clients)() as u64,
                elapsed: self.begun.elapsed(),
                host: *host,
                counts: *device.counts(),
                counters: *device.chip().counters(),
            };
            Ok(FtlFigures::of_device(device, &self.volume, &self.image)?.with_live(live).shown(form))
        })
    }

    fn structures(&self, form: Form, block: Option<u32>) -> Result<Vec<u8>> {
        self.export.between_requests(|volume, _, _| {
            let device = volume.device()?;
            let blocks = KnownUses::known(device.uses()?, device.sectors());
            // Map blocks leave their round, and others come.
            let now = Volume::find(device.chip_mut()).map_err(|error| anyhow!("{error}"))?;
            let mut out = Vec::new();
            let image = &self.image;
            ShownLayer { image, volume: &now, chip: device.chip_mut(), blocks, form }.write(block, &mut out)?;
            Ok(out)
        })
    }
}
