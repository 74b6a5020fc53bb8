//! The quantities bundles take, and sets of them: what an expression depends on.

pub use mbs_bundles::Group;

/// A set of groups: what an expression depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSet(u64);

const _: () = assert!(Group::ALL.len() <= u64::BITS as usize);

impl GroupSet {
    /// The empty set: a constant's.
    pub const NONE: GroupSet = GroupSet(0);

    /// The set of one group.
    #[inline]
    pub fn of(group: Group) -> GroupSet {
        GroupSet(1 << group as u64)
    }

    /// Union.
    #[inline]
    pub fn union(self, other: GroupSet) -> GroupSet {
        GroupSet(self.0 | other.0)
    }

    /// Whether some group is in both.
    #[inline]
    pub fn intersects(self, other: GroupSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the group is in the set.
    #[inline]
    pub fn contains(self, group: Group) -> bool {
        self.0 & (1 << group as u64) != 0
    }

    /// Whether nothing is in the set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set is exactly the parameters: what `prepare` computes.
    #[inline]
    pub fn is_parameters_only(self) -> bool {
        self == GroupSet::of(Group::Parameters)
    }
}
