//! Where something stands: a run of bare slots, or a node inside a slot.

/// A slot's address: block × native slots per block + place in programming order (40 bits).
pub type Slot = u64;

/// The address of no slot.
pub const NO_SLOT: Slot = (1 << 40) - 1;

/// Nodes start and end on multiples of this within their slot.
pub const NODE_UNIT: usize = 16;

/// The most chunks one place can cover.
pub const RUN_MAX: u64 = u16::MAX as u64;

/// Where a key's content stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `count` bare slots one after another, for as many chunks.
    Run { slot: Slot, count: u32 },
    /// A node `units` × 16 bytes long, `at` × 16 bytes into a slot.
    Node { slot: Slot, at: u8, units: u8 },
    /// Present without content of its own.
    Mark,
    /// Space is kept for `count` chunks; nothing was written to them, they read as zeros.
    Reserved { count: u32 },
    /// A node still in memory, by its number in the pending list. Never on flash.
    Pending { number: u32 },
}

impl Place {
    /// How many keys it covers.
    pub fn span(self) -> u64 {
        match self {
            Place::Run { count, .. } | Place::Reserved { count } => u64::from(count),
            _ => 1,
        }
    }

    /// The place that covers what this and the `next` one cover, if that goes on where this one ends.
    pub fn joined(self, next: Place) -> Option<Place> {
        if self.span() + next.span() > RUN_MAX {
            return None;
        }
        match (self, next) {
            (Place::Run { slot, count }, Place::Run { slot: after, count: more })
                if slot + u64::from(count) == after =>
            {
                Some(Place::Run { slot, count: count + more })
            }
            (Place::Reserved { count }, Place::Reserved { count: more }) => {
                Some(Place::Reserved { count: count + more })
            }
            _ => None,
        }
    }

    /// The part from the `skip`th key on, `span` keys long.
    pub fn part(self, skip: u64, span: u64) -> Place {
        match self {
            Place::Run { slot, .. } => Place::Run { slot: slot + skip, count: span as u32 },
            Place::Reserved { .. } => Place::Reserved { count: span as u32 },
            other => other,
        }
    }
}
