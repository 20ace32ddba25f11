//! The words for a translation layer that `flexfs mkfs` or `flexfs serve` makes.
//!
//! Invariant: nothing of it is taken without `--ftl`.

use clap::Args;
use ftl::Scheme;

use super::values::scheme;

/// A translation layer instead of the file system.
#[derive(Args)]
#[command(next_help_heading = "Translation layer")]
pub struct Layer {
    /// Make a translation layer of this scheme instead of the file system
    #[arg(long, value_name = "SCHEME", value_parser = scheme())]
    pub ftl: Option<Scheme>,
    #[command(flatten)]
    pub counts: LayerCounts,
}

/// Numbers of blocks of a translation layer, where the usual ones do not suit.
#[derive(Args)]
#[command(next_help_heading = "Translation layer")]
pub struct LayerCounts {
    /// So many blocks hold no sectors: anchors, map, log blocks, free blocks [default: 1 of 64, at least 32]
    #[arg(long, value_name = "N", requires = "ftl")]
    pub extra_blocks: Option<u32>,
    /// So many log blocks at most [default: 8, or 16 where there are 64 extra blocks, and log-block lists them all in a page]
    #[arg(long, value_name = "N", requires = "ftl")]
    pub logs: Option<u32>,
    /// So many blocks for the map of log-block [default: as few as turn it over, at least 3]
    #[arg(long, value_name = "N", requires = "ftl", value_parser = clap::value_parser!(u32).range(2..))]
    pub map_blocks: Option<u32>,
}
