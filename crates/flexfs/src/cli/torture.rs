//! What `flexfs torture` is told.

use clap::Args;
use ftl::Scheme;
use torture::crash::VolumeOver;
use torture::files::{Cut, Ground, Setup};
use torture::ops::Op;
use torture::sectors::RigKind;

use super::values::{Offered, drive};

/// Cut the power of emulated volumes wherever it can be cut, and judge what comes back.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs torture                       a part of everything: about half an hour of processor time
  flexfs torture --seed 2              another part
  flexfs torture --exhaustive --json   all of it, cut in every way: some hours of processor time
  flexfs torture --chip native         MLC written natively alone
  flexfs torture --chip slc --ops 'unlink foo; sync; mkdir foo'
  flexfs torture --chip slc --ops 'append foo 10; sync' --cut 2:garbage
  flexfs torture --media 10000         failing blocks and bit errors instead
  flexfs torture --over codesign       the file system over a drive that maps only blocks
  flexfs torture --ftl log-block       a translation layer, not the file system

A part has every chip, kind of cut, volume to begin with, operation, internal process and kind of formatting. Which pairs of
operations and which random histories it has depends on --seed. Threads share the work: two processors take half as long.
How far it is, what was cut and what was found is shown on standard error.

Every program and erase of a script is cut in each way the chip knows: nothing happened (old), mixed bytes (garbage),
it was complete (full), it reads well once (unstable), it does not read (uncorrectable), it looks erased and is not
(weak), and of each kind, where pages share a word line, with the loss of those (+pairs); where other dies are busy,
with none of their operations torn, all (+all) or some (+dies=MASK). The recovery from each is
cut again, and again. A chip that comes back must mount, hold everything synced, show a state between two operations,
be in order, and take writes. docs/DESIGN.md says what is guaranteed.

On a busy volume overwrites and background steps bring a checkpoint, or the emptying of a block, under way before a random
history begins and every 20 operations of it; the operations 'stir checkpoint' and
'stir emptying' do so in a script.

With --media programs and erases fail in random histories, the chip refuses all of them for a while (as when it is
write-protected), bits flip (up to as many as the ECC corrects), months pass, the power goes now and then, and at
the end pages are damaged: nothing may be lost before that, and nothing be wrong
after, but refused; what is written beside the damage must be there after the next mount.

With --ftl random histories of requests to a translation layer's sectors are cut in the same way, on small chips: each
acknowledged sector must hold what it was given, and a request of several be there as a whole or not at all; with
--media as well, its programs and erases fail and bits flip.

For each kind of violation there is a command that replays one: a chip, what is on it, operations, and the cuts; or
a seed and the numbers of the steps it takes. The first ten are made as small as can be.
Exit status: 0 without a violation, 1 otherwise.")]
pub struct Torture {
    /// All sequences of one and two operations, more histories and more cuts, instead of a part of them
    #[arg(long)]
    pub exhaustive: bool,
    /// So many random histories on a failing medium, of seeds from --seed on, and nothing else
    #[arg(long, value_name = "N", group = "random", value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with_all = ["exhaustive", "fail_fast", "chip", "ground", "ops", "quiet", "mix", "failing", "format", "cuts"])]
    pub media: Option<u64>,
    /// Other random histories, and other pairs of operations
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stop after the first case that shows a violation
    #[arg(long)]
    pub fail_fast: bool,
    /// Threads [default: as many as there are processors]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Only this chip, mounted as it says
    #[arg(long, value_parser = Offered { names: || Setup::all().iter().map(|setup| setup.name).collect(), read: Setup::named })]
    pub chip: Option<&'static Setup>,
    /// Over a drive on the chip, which maps only blocks and is started from its chip at each mount
    #[arg(long, value_name = "DRIVE", value_parser = drive())]
    pub over: Option<VolumeOver>,
    #[command(flatten)]
    pub replay: Replay,
    #[command(flatten)]
    pub sectors: Sectors,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// One case, and the cuts in it.
#[derive(Args)]
#[command(next_help_heading = "One case")]
pub struct Replay {
    /// What stands on the volume: tree, full, busy, worn or faded
    #[arg(long, default_value = "tree", value_parser = Offered { names: || Ground::ALL.map(Ground::name).to_vec(), read: Ground::named })]
    pub ground: Ground,
    /// These operations, apart by semicolons; with --format, they come before it
    #[arg(long, value_parser = Op::list, requires = "chip", conflicts_with_all = ["mix", "exhaustive"])]
    pub ops: Option<Ops>,
    /// Of --ops, so many at the start that are not cut
    #[arg(long, default_value_t = 0, requires = "ops", conflicts_with = "format")]
    pub quiet: usize,
    /// The random operations of this seed
    #[arg(long, value_name = "SEED", group = "random", requires_all = ["chip", "keep"], conflicts_with = "exhaustive")]
    pub mix: Option<u64>,
    /// Of --mix or --media, the operations of these numbers, such as 0-20,25
    #[arg(long, value_name = "NUMBERS", value_parser = numbers, requires = "random")]
    pub keep: Option<Numbers>,
    /// With --mix, programs and erases fail now and then
    #[arg(long, requires = "mix")]
    pub failing: bool,
    /// Format the chip, as `mkfs --force` does: the one with the volume, or one from the factory
    #[arg(long, value_name = "CHIP", requires = "chip", conflicts_with_all = ["mix", "exhaustive"])]
    pub format: Option<Formatted>,
    /// Only this cut (OPERATION:TEAR, or after:STEP, each with +all or +dies=MASK); the next one is in the recovery from it
    #[arg(long = "cut", value_name = "CUT")]
    pub cuts: Vec<Cut>,
}

/// Which chip is formatted.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Formatted {
    Used,
    New,
}

/// Translation layers, and one history of one.
#[derive(Args)]
#[command(next_help_heading = "Translation layers")]
pub struct Sectors {
    /// This scheme, or all of them
    #[arg(long, value_parser = Offered { names: schemes, read: named_schemes },
        conflicts_with_all = ["over", "fail_fast", "chip", "ground", "ops", "quiet", "mix", "keep", "failing", "format"])]
    pub ftl: Option<Schemes>,
    /// The chip of one history
    #[arg(long, requires_all = ["ftl", "history"], value_parser = Offered { names: || RigKind::ALL.map(RigKind::name).to_vec(), read: str::parse::<RigKind> })]
    pub rig: Option<RigKind>,
    /// The seed of one history
    #[arg(long, value_name = "SEED", requires_all = ["rig", "step"])]
    pub history: Option<u64>,
    /// The step of that history in which the first --cut is
    #[arg(long, value_name = "NUMBER", requires_all = ["history", "cuts"])]
    pub step: Option<usize>,
}

/// The schemes that a name stands for.
pub type Schemes = Vec<Scheme>;

fn schemes() -> Vec<&'static str> {
    Scheme::ALL.into_iter().map(Scheme::name).chain(["all"]).collect()
}

fn named_schemes(name: &str) -> Result<Schemes, String> {
    match name {
        "all" => Ok(Scheme::ALL.to_vec()),
        name => name.parse().map(|scheme| vec![scheme]).map_err(str::to_owned),
    }
}

/// Several values of one argument.
pub type Ops = Vec<Op>;
pub type Numbers = Vec<usize>;

/// Steps have smaller numbers.
const NUMBERS_MAX: usize = 1 << 20;

fn numbers(text: &str) -> Result<Numbers, String> {
    let number = |digits: &str| match digits.trim().parse::<usize>() {
        Ok(number) if number < NUMBERS_MAX => Ok(number),
        Ok(number) => Err(format!("{number} is too large a number")),
        Err(_) => Err(format!("{digits} is not a number")),
    };
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("{part} runs backwards"));
                }
                all.extend(first..=last);
            }
            None => all.push(number(part)?),
        }
    }
    Ok(all)
}
