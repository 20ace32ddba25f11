//! The inode cache: bounded, but for inodes that are open or newer in memory than on flash.

use alloc::collections::BTreeMap;

use crate::format::inode::Inode;

/// An inode in memory.
#[derive(Clone, Copy)]
pub struct Cached {
    pub(super) inode: Inode,
    /// Newer than its node on flash.
    pub(super) dirty: bool,
    /// Open handles.
    pub(super) opens: u32,
    used: bool,
}

impl Cached {
    /// The inode.
    pub(super) fn inode(&self) -> Inode {
        self.inode
    }

    /// Open handles.
    pub(super) fn opens(&self) -> u32 {
        self.opens
    }
}

/// The cache.
pub struct Inodes {
    map: BTreeMap<u64, Cached>,
    capacity: usize,
    dirty: usize,
    hand: u64,
}

impl Inodes {
    /// A cache of about `capacity` inodes.
    pub fn new(capacity: usize) -> Self {
        Self { map: BTreeMap::new(), capacity: capacity.max(16), dirty: 0, hand: 0 }
    }

    /// The inode, if it is here.
    pub fn get(&mut self, ino: u64) -> Option<&Cached> {
        let cached = self.map.get_mut(&ino)?;
        cached.used = true;
        Some(cached)
    }

    /// Keeps a clean inode read from flash.
    pub fn insert(&mut self, ino: u64, inode: Inode) {
        self.evict();
        self.map.insert(ino, Cached { inode, dirty: false, opens: 0, used: true });
    }

    /// Keeps an inode that is newer than its node.
    pub fn update(&mut self, ino: u64, inode: Inode) {
        self.evict();
        let cached = self.map.entry(ino).or_insert(Cached { inode, dirty: false, opens: 0, used: true });
        cached.inode = inode;
        if !cached.dirty {
            cached.dirty = true;
            self.dirty += 1;
        }
    }

    /// The inode, if it is here, to make it newer than its node.
    pub fn change(&mut self, ino: u64) -> Option<&mut Inode> {
        let cached = self.map.get_mut(&ino)?;
        if !cached.dirty {
            cached.dirty = true;
            self.dirty += 1;
        }
        cached.used = true;
        Some(&mut cached.inode)
    }

    /// The inode's node is on flash now.
    pub fn cleaned(&mut self, ino: u64) {
        if let Some(cached) = self.map.get_mut(&ino)
            && cached.dirty
        {
            cached.dirty = false;
            self.dirty -= 1;
        }
    }

    /// Forgets an inode.
    pub fn remove(&mut self, ino: u64) {
        if self.map.remove(&ino).is_some_and(|cached| cached.dirty) {
            self.dirty -= 1;
        }
    }

    /// Counts a handle in or out; how many are left.
    pub fn count_open(&mut self, ino: u64, change: i32) -> u32 {
        match self.map.get_mut(&ino) {
            Some(cached) => {
                cached.opens = cached.opens.saturating_add_signed(change);
                cached.opens
            }
            None => 0,
        }
    }

    /// Inodes newer than their nodes.
    pub fn dirty_count(&self) -> usize {
        self.dirty
    }

    /// More inodes are dirty than the cache should hold.
    pub fn is_strained(&self) -> bool {
        self.dirty >= self.capacity / 2
    }

    /// The next dirty inode, from `from` on. Where none is dirty, the cache is not walked.
    pub fn next_dirty(&self, from: u64) -> Option<(u64, Inode)> {
        if self.dirty == 0 {
            return None;
        }
        let mut later = self.map.range(from..);
        later.find(|(_, cached)| cached.dirty).map(|(&ino, cached)| (ino, cached.inode))
    }

    fn evict(&mut self) {
        let mut looked = 0;
        while self.map.len() >= self.capacity && looked < 8 {
            looked += 1;
            let next = self.map.range(self.hand..).next().or_else(|| self.map.iter().next());
            let Some((&ino, &cached)) = next else { return };
            self.hand = ino + 1;
            if cached.used {
                if let Some(cached) = self.map.get_mut(&ino) {
                    cached.used = false;
                }
            } else if !cached.dirty && cached.opens == 0 {
                self.map.remove(&ino);
            }
        }
    }
}
