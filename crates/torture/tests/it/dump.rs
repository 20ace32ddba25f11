//! Looking at a volume's structures: what is told is what stands there.

use flexfs_core::dump::{IndexEntry, SlotState};
use flexfs_core::{Compression, Fs, MountOptions, NewNode, ROOT_INO, kind};
use nand::Nand;
use torture::crash::Rig;

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };

fn index<N: Nand>(fs: &mut Fs<N>) -> Vec<IndexEntry> {
    let mut all = Vec::new();
    fs.index_entries(&mut |entry| {
        all.push(entry);
        true
    })
    .unwrap();
    all
}

/// The state of the slot at `address`.
fn slot<N: Nand>(fs: &mut Fs<N>, address: u64) -> SlotState {
    let blocks: Vec<u32> = fs.blocks().map(|block| block.number).collect();
    let mut found = None;
    for block in blocks {
        fs.slots(block, &mut |at, state| {
            found = (at == address).then_some(state).or(found.take());
            found.is_none()
        })
        .unwrap();
    }
    found.unwrap()
}

#[test]
fn blocks_slots_index_and_anchor_tell_of_the_same_volume() {
    let options = MountOptions { compression: Compression::None, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 64, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 4096).unwrap().fs;
    let ino = fs.create(ROOT_INO, b"a file", FILE, 1).unwrap().ino;
    fs.write(ino, 0, &[7; 3 * 4096], 128_000).unwrap();
    fs.allocate(ino, 1 << 20, 8192, true, 2).unwrap();
    fs.setxattr(ino, b"user.x", b"value", false, false, 3).unwrap();
    let (chip, unmounted) = fs.unmount(4);
    unmounted.unwrap();
    let mut fs = Fs::mount(chip, MountOptions { read_only: true, ..rig.options }).map_err(|(_, error)| error).unwrap();

    let all = index(&mut fs);
    let of = |kind: &str, ino: u64| -> Vec<IndexEntry> {
        all.iter().filter(|entry| entry.kind == kind && entry.ino == ino).cloned().collect()
    };
    assert_eq!((of("inode", ROOT_INO).len(), of("inode", ino).len(), of("attribute", ino).len()), (1, 1, 1));
    let data = of("data", ino);
    assert_eq!(
        data.iter().map(|entry| (entry.offset, entry.count, entry.slot.is_some())).collect::<Vec<_>>(),
        [(0, 3, true), (256, 2, false)]
    );
    let SlotState::Holds(tag) = slot(&mut fs, data[0].slot.unwrap() + 2) else { panic!("no tag") };
    assert_eq!((tag.kind, tag.ino, tag.chunk, tag.len, tag.time_ns), ("data", ino, 2, 4096, Some(128_000)));
    let entry = &of("entry", ROOT_INO)[0];
    let SlotState::Holds(tag) = slot(&mut fs, entry.slot.unwrap()) else { panic!("no tag") };
    let said = tag.nodes.iter().find(|(at, _)| *at == entry.node.unwrap().0).unwrap();
    assert_eq!(said.1, format!("entry of 1: \"a file\" is {ino}"));

    let anchor = fs.anchor().unwrap();
    let (root, levels) = anchor.root.unwrap();
    let SlotState::Holds(tag) = slot(&mut fs, root) else { panic!("no tag") };
    assert_eq!((tag.kind, tag.chunk), ("index", u64::from(levels) - 1));
    assert!(anchor.clean && anchor.files == 2 && anchor.reserved_chunks == 2);
    let anchors: Vec<u32> = fs.blocks().filter(|block| block.used_as == "anchor").map(|block| block.number).collect();
    assert_eq!(anchors, anchor.pair);
    let mut newest = 0;
    for block in anchors {
        fs.slots(block, &mut |_, state| {
            newest += usize::from(matches!(state, SlotState::Holds(tag) if tag.kind == "anchor"));
            true
        })
        .unwrap();
    }
    assert!(newest >= 2, "a clean anchor is written twice");
    let info = fs.info().unwrap();
    let total: u64 = info.written_bytes.iter().sum();
    assert!(info.written_bytes[0] >= 3 * 4096 && total >= fs.blocks().map(|block| u64::from(block.live_bytes)).sum());
    assert_eq!(info.reserved_bytes, 8192);
}
