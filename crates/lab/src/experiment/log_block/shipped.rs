//! The traces of real hosts that are shipped with the crate, and the orders of Fig. 5's schemes on them.
//! Invariant: each number of extra blocks has one order on a trace, and the figures of its reason were counted in
//! replays.

use super::traces::EXTRA_BLOCKS;

/// A trace as it is shipped, and the orders of the schemes on it.
pub struct ShippedTrace {
    pub name: &'static str,
    pub packed: &'static [u8],
    pub orders: &'static [ExplainedOrder],
}

/// An order of the schemes by extra erases, and why it is this one.
pub struct ExplainedOrder {
    pub extra_blocks: &'static [u32],
    pub order: &'static str,
    pub reason: &'static str,
}

pub const SHIPPED: [ShippedTrace; 6] = [
    ShippedTrace {
        name: "camera-vfat-sync",
        packed: include_bytes!("../../../traces/camera-vfat-sync.trace.gz"),
        orders: &[ExplainedOrder {
            extra_blocks: &EXTRA_BLOCKS,
            order: "L < P/G < P/C < R",
            reason: "14,612 of 15,501 writes are of one of ten sectors of tables and directory: L merges a log \
                         block once for 32 of them, 457 times at most; with 16, 32, 64 extra blocks P/G copies 19.9, \
                         15.9, 10.7 pages of each block that it cleans, and P/C, which weighs age too, 21.2, 18.5, \
                         15.8; R has 1.25 extra erases for each such write",
        }],
    },
    ShippedTrace {
        name: "camera-vfat",
        packed: include_bytes!("../../../traces/camera-vfat.trace.gz"),
        orders: &[
            ExplainedOrder {
                extra_blocks: &[16],
                order: "R < L < P/G < P/C",
                reason: "339 of 663 writes have 256 sectors and take eight free blocks each, for which L reclaims log \
                         blocks early: 67 merges and 224 partial ones; with requests cut into blocks it has 11 and \
                         135, and fewer extra erases than R, 235 for 259; P/G copies 6.3 and P/C 13.1 pages of each \
                         block that it cleans",
            },
            ExplainedOrder {
                extra_blocks: &[32],
                order: "P/G < P/C < L < R",
                reason: "pictures die beside each other: P/G copies 0.1 and P/C 0.2 pages of each block that it \
                         cleans; L does 135 partial merges, as many as without the writes of tables and directory, \
                         and has 26 more than without map blocks; R takes one more block each time a sector of tables \
                         and directory is written again: without such writes it has 70 for 259",
            },
            ExplainedOrder {
                extra_blocks: &[64],
                order: "P/G = P/C < L < R",
                reason: "no page counts in any block that page mapping cleans; L erases log blocks that ends of \
                         pictures filled in part, and has 22 more than without map blocks; R takes one more block \
                         each time a sector of tables and directory is written again: without such writes it has 70 \
                         for 261",
            },
        ],
    },
    ShippedTrace {
        name: "camera-vfat-random",
        packed: include_bytes!("../../../traces/camera-vfat-random.trace.gz"),
        orders: &[ExplainedOrder {
            extra_blocks: &EXTRA_BLOCKS,
            order: "L < P/G < P/C < R",
            reason: "14,695 of 15,749 writes are of sectors of tables and directory alone that are written over \
                         and over: L merges a log block once for 32 of them, 462 times at most; with 16, 32, 64 extra \
                         blocks P/G copies 20.3, 16.3, 11.7 pages of each block that it cleans, and P/C, which weighs \
                         age too, 21.4, 18.4, 14.3; R has 1.22 extra erases for each such write",
        }],
    },
    ShippedTrace {
        name: "camera-mtools",
        packed: include_bytes!("../../../traces/camera-mtools.trace.gz"),
        orders: &[
            ExplainedOrder {
                extra_blocks: &[16],
                order: "L < R < P/G < P/C",
                reason: "630 of 1,060 writes are of sectors of tables and directory alone that are written over and \
                         over: R takes one more block each time, and has 68 for 883 without such writes; L gathers \
                         them in log blocks, with 107 merges and 136 partial ones; P/G copies 10.2 and P/C 14.7 pages \
                         of each block that it cleans",
            },
            ExplainedOrder {
                extra_blocks: &[32],
                order: "P/G < P/C < L < R",
                reason: "pictures die beside each other: P/G copies 0.3 and P/C 0.9 pages of each block that it \
                         cleans; L does 135 partial merges, as many as without the writes of tables and directory, \
                         and has 24 more than without map blocks; R takes one more block each time a sector of tables \
                         and directory is written again: without such writes it has 68 for 883",
            },
            ExplainedOrder {
                extra_blocks: &[64],
                order: "P/G = P/C < L < R",
                reason: "page mapping copies 30 pages in all; L does 93 partial merges and 19 others, and has 25 more \
                         than without map blocks; R takes one more block each time a sector of tables and directory \
                         is written again: without such writes it has 68 for 885, and L 79 for 113",
            },
        ],
    },
    ShippedTrace {
        name: "andrew-ext2",
        packed: include_bytes!("../../../traces/andrew-ext2.trace.gz"),
        orders: &[
            ExplainedOrder {
                extra_blocks: &[16, 32],
                order: "P/G < P/C < L < R",
                reason: "15,112 of 19,336 pages come in writes of parts of 622 blocks, for which there are 8 and 24 \
                         log blocks at most: L reclaims 832 and 758 of them, most by merges that copy the rest of a \
                         block; R merges 1,131 and 1,097 times; page mapping puts the parts of all blocks into one, \
                         and P/G copies 15.2 and 9.0 pages of each block that it cleans, P/C 15.6 and 11.5",
            },
            ExplainedOrder {
                extra_blocks: &[64],
                order: "P/C < P/G < L < R",
                reason: "15,112 of 19,336 pages come in writes of parts of 622 blocks, for which there are 56 log \
                         blocks at most: L reclaims 713 of them, most by merges that copy the rest of a block; R \
                         merges 1,030 times; page mapping puts the parts of all blocks into one, and copies 1.3 pages \
                         of each block that it cleans: P/C 762 in all and P/G 816, which makes one erase",
            },
        ],
    },
    ShippedTrace {
        name: "pda-vfat",
        packed: include_bytes!("../../../traces/pda-vfat.trace.gz"),
        orders: &[ExplainedOrder {
            extra_blocks: &EXTRA_BLOCKS,
            order: "L < P/G < P/C < R",
            reason: "4,925 of 5,900 writes are of one of ten sectors of tables and directory: L gathers them in \
                         log blocks, with 203, 164, 163 merges; with 16, 32, 64 extra blocks P/G copies 20.3, 17.2, \
                         11.3 pages of each block that it cleans, and P/C, which weighs age too, 22.5, 20.2, 17.3; R \
                         takes at least one more block each time, and has 403 for some 6,100 without such writes",
        }],
    },
];
