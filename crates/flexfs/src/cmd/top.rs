//! `flexfs top`: watches a mounted volume, or a card that is served, in the terminal, until a key or its end.
//!
//! Invariant: a server that is slow to answer keeps no key waiting.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};

use crate::any_chip::AnyChip;
use crate::monitor::{self, Form};
use crate::top::screen::{self, End, News};
use crate::top::{self, Picture, ServerAnswer};
use crate::translation::FtlImage;
use crate::{cli, image, output};

pub fn run(args: &cli::Top) -> Result<ExitCode> {
    let (image, interval) = (args.image.as_path(), args.interval);
    let first = look(image)?;
    let ended = match &first {
        ServerAnswer::Volume(_) => "not mounted any more",
        ServerAnswer::Card(_) => "not served any more",
    };
    let mut picture = Picture::new(first, interval);
    if args.once {
        thread::sleep(interval);
        picture.take(look(image)?);
        output::say(&top::text(&picture))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() {
        let shown = image.display();
        bail!(
            "{shown}: standard output is not a terminal; `flexfs info {shown}` tells the figures as text, and `flexfs \
             top --once {shown}` prints one picture"
        );
    }
    let answers = ask_every(interval, image.to_path_buf())?;
    if screen::watch(picture, &answers)? == End::Ended {
        output::say(&format!("{}: {ended}", image.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the server tells now.
fn look(image: &Path) -> Result<ServerAnswer> {
    let shown = image.display();
    match monitor::ask(image, Form::Json) {
        Some(answer) => read(image, &answer),
        None if monitor::is_served(image) => {
            bail!("{shown}: its server does not answer; it does so to root and to whoever started it")
        }
        None => Err(not_mounted(image)),
    }
}

/// Why nothing can be watched of what no server serves.
fn not_mounted(image: &Path) -> Error {
    let shown = image.display();
    match AnyChip::open(image, true) {
        Ok(chip) => match chip.into_emulated().ok().and_then(FtlImage::on) {
            Some(layer) => layer.refusal(image),
            None => anyhow!(
                "{shown}: not mounted; mount it with `flexfs mount {shown} DIR`, or see it with `flexfs info {shown}`"
            ),
        },
        Err(error) => image::refused(error),
    }
}

fn read(image: &Path, answer: &str) -> Result<ServerAnswer> {
    let shown = image.display();
    ServerAnswer::read(answer).map_err(|error| {
        anyhow!("{shown}: its server answers in another way ({error}); start it again with this version of flexfs")
    })
}

/// Asks again and again in the background, until nobody listens or the server is gone.
fn ask_every(interval: Duration, image: PathBuf) -> Result<Receiver<News>> {
    let (send, answers) = mpsc::channel();
    let ask = move || {
        loop {
            thread::sleep(interval);
            let news = match monitor::ask(&image, Form::Json) {
                Some(answer) => read(&image, &answer).map_or_else(News::Failed, News::Told),
                None if monitor::is_served(&image) => News::Silent,
                None => News::Ended,
            };
            if send.send(news).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("asker".into()).spawn(ask).context("cannot ask in the background")?;
    Ok(answers)
}
