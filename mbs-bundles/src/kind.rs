//! The bundles as an enum, their entries and families.

use crate::entry::{
    Argument, Entry, Exists, Family, Measure, Pivots, ResultEntry, Section, Sections, Shape, Written,
};
use crate::{Group, Size};
use core::slice;

macro_rules! kinds {
    ($(trait $Trait:ident in $Family:ident {
        places $places:tt
        $(#[doc = $doc:literal]
        $Kind:ident = $method:ident($($argument:ident: $Argument:ident),*) reads [$($group:ident)*]
            -> $form:tt($($result:ident: [$($factor:literal)? $($size:ident)*] $what:literal),* $(,)?)
            { pivots: $pivots:ident, exists: $exists:ident, cost: [$($times:literal $($measure:ident)*),*],
            sections: $($sections:tt)* })*
    })*) => {
        /// The bundles one can ask for, in the order in which they are generated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum BundleKind {
            $($(#[doc = $doc] $Kind,)*)*
        }

        impl BundleKind {
            /// All of them.
            pub const ALL: [BundleKind; ENTRIES.len()] = {
                let mut all = [BundleKind::ForwardDynamics; ENTRIES.len()];
                let mut i = 0;
                while i < all.len() {
                    all[i] = ENTRIES[i].kind;
                    i += 1;
                }
                all
            };
        }

        static ENTRIES: [Entry; [$($(stringify!($Kind)),*),*].len()] = [$($(Entry {
            kind: BundleKind::$Kind,
            name: stringify!($method),
            doc: $doc.trim_ascii(),
            of_trait: stringify!($Trait),
            family: Family::$Family,
            arguments: &[$((stringify!($argument), argument!($Argument))),*],
            reads: &[$(Group::$group),*],
            written: written!($form),
            results: &[$(ResultEntry {
                name: stringify!($result),
                shape: Shape { factor: factor!($($factor)?), sizes: &[$(Size::$size),*] },
                doc: $what,
            }),*],
            pivots: Pivots::$pivots,
            exists: Exists::$exists,
            cost: &[$(($times, &[$(Measure::$measure),*])),*],
            sections: sections!($($sections)*),
        }),*),*];
    };
}

macro_rules! argument {
    (At) => {
        Argument::At
    };
    (Motion) => {
        Argument::Motion
    };
    (Impulses) => {
        Argument::Impulses
    };
    (Weights) => {
        Argument::Weights
    };
    (Stabilisation) => {
        Argument::Stabilisation
    };
    (Time) => {
        Argument::Time
    };
    ($group:ident) => {
        Argument::Slice(Group::$group)
    };
}

macro_rules! written {
    (slices) => {
        Written::Slices
    };
    (array) => {
        Written::Array
    };
    (in_place) => {
        Written::InPlace
    };
    (($name:ident: $Struct:ident)) => {
        Written::Fields { name: stringify!($name), of: stringify!($Struct) }
    };
}

macro_rules! factor {
    () => {
        1
    };
    ($factor:literal) => {
        $factor
    };
}

macro_rules! sections {
    (none) => { Sections::None };
    (like $Kind:ident) => { Sections::Like(BundleKind::$Kind) };
    ($result:ident as $List:ident($($from:ident: $From:ident),*) { $($section:ident: $len:expr, $what:literal;)* }) => {
        Sections::Of {
            result: stringify!($result),
            list: stringify!($List),
            sections: &[$(Section { name: stringify!($section), len: stringify!($len), doc: $what }),*],
        }
    };
}

crate::bundles! { [kinds] }

/// Some of the bundles.
enum Selection {
    Of(&'static [Family]),
    Unconstrained,
    Cheaper,
}

impl Selection {
    const fn has(&self, entry: &Entry) -> bool {
        match self {
            Selection::Unconstrained => matches!(entry.exists, Exists::Unconstrained),
            Selection::Cheaper => matches!(entry.exists, Exists::Cheaper),
            Selection::Of(_) if matches!(entry.exists, Exists::Cheaper | Exists::Tangent) => false,
            // Nobody asks for those that do the work of others.
            Selection::Of(_)
                if matches!(entry.exists, Exists::Fused) && !matches!(entry.family, Family::FusedSteps) =>
            {
                false
            }
            Selection::Of(families) => {
                let mut k = 0;
                while k < families.len() && families[k] as u8 != entry.family as u8 {
                    k += 1;
                }
                k < families.len()
            }
        }
    }

    const fn count(&self) -> usize {
        let (mut count, mut i) = (0, 0);
        while i < ENTRIES.len() {
            count += self.has(&ENTRIES[i]) as usize;
            i += 1;
        }
        count
    }

    const fn members<const N: usize>(&self) -> [BundleKind; N] {
        let mut members = [BundleKind::ForwardDynamics; N];
        let (mut count, mut i) = (0, 0);
        while i < ENTRIES.len() {
            if self.has(&ENTRIES[i]) {
                members[count] = ENTRIES[i].kind;
                count += 1;
            }
            i += 1;
        }
        members
    }
}

const TREE: Selection = Selection::Of(&[Family::Tree]);
const COORDINATE_FORM: Selection = Selection::Of(&[Family::CoordinateForm]);
const FUSED_STEPS: Selection = Selection::Of(&[Family::FusedSteps]);
const JOINT_FORM: Selection = Selection::Of(&[Family::JointForm]);
const SENSITIVITIES: Selection = Selection::Of(&[Family::Start, Family::Sensitivities]);
const JOINT_SENSITIVITIES: Selection = Selection::Of(&[Family::Start, Family::JointSensitivities]);
const EVENTS: Selection = Selection::Of(&[Family::Events]);
const EVENT_SENSITIVITIES: Selection = Selection::Of(&[Family::EventSensitivities]);
const ROBOTICS: Selection = Selection::Of(&[Family::Robotics]);
const UNCONSTRAINED: Selection = Selection::Unconstrained;
const PRODUCTS: Selection = Selection::Cheaper;

impl BundleKind {
    /// Those of joint form that know no constraints.
    pub const TREE: [BundleKind; TREE.count()] = TREE.members();
    /// Those in coordinate form, which come together: implicit integrators need them all.
    pub const COORDINATE_FORM: [BundleKind; COORDINATE_FORM.count()] = COORDINATE_FORM.members();
    /// Parts of an implicit step, each at once, together: beside [`BundleKind::COORDINATE_FORM`], where the generator chooses them.
    pub const FUSED_STEPS: [BundleKind; FUSED_STEPS.count()] = FUSED_STEPS.members();
    /// Those of joint form that know constraints.
    pub const JOINT_FORM: [BundleKind; JOINT_FORM.count()] = JOINT_FORM.members();
    /// What sensitivities of implicit runs need beside [`BundleKind::COORDINATE_FORM`], together.
    pub const SENSITIVITIES: [BundleKind; SENSITIVITIES.count()] = SENSITIVITIES.members();
    /// Transposed products beside [`BundleKind::SENSITIVITIES`], together, for adjoints: only where they take fewer operations.
    pub const PRODUCTS: [BundleKind; PRODUCTS.count()] = PRODUCTS.members();
    /// What sensitivities of explicit runs need beside forward dynamics, together.
    pub const JOINT_SENSITIVITIES: [BundleKind; JOINT_SENSITIVITIES.count()] = JOINT_SENSITIVITIES.members();
    /// Beside [`BundleKind::JOINT_SENSITIVITIES`] of runs whose steps end with a correction onto the constraints, together, where the generator
    /// chooses them.
    pub const DERIVATIVES_OF_CORRECTIONS: [BundleKind; 2] =
        [BundleKind::DifferentiateCorrection, BundleKind::TransposeCorrection];
    /// What runs of a model with events need, together.
    pub const EVENTS: [BundleKind; EVENTS.count()] = EVENTS.members();
    /// What their gradients need, together.
    pub const EVENT_SENSITIVITIES: [BundleKind; EVENT_SENSITIVITIES.count()] = EVENT_SENSITIVITIES.members();
    /// What identification, control and optimisation ask for beside [`BundleKind::TREE`].
    pub const ROBOTICS: [BundleKind; ROBOTICS.count()] = ROBOTICS.members();
    /// Those that solve with the mass matrix of a tree alone: they do not exist for models with constraints.
    pub const UNCONSTRAINED: [BundleKind; UNCONSTRAINED.count()] = UNCONSTRAINED.members();

    /// What simulation and its results need; of a model that is differentiated, gradients too.
    pub const STANDARD: [BundleKind; 5] = [
        BundleKind::ForwardDynamics,
        BundleKind::Energy,
        BundleKind::Markers,
        BundleKind::Outputs,
        BundleKind::Objectives,
    ];

    /// What the file's runs and their gradients need, without energies, markers and outputs.
    pub const GRADIENT: [BundleKind; 2] = [BundleKind::Objectives, BundleKind::StartDerivatives];

    /// Requests that have a name.
    pub const REQUESTS: [(&str, &[BundleKind]); 3] =
        [("standard", &Self::STANDARD), ("gradient", &Self::GRADIENT), ("all", &Self::ALL)];

    /// The bundles of a request: of one of [`BundleKind::REQUESTS`], or the one with this name.
    pub fn requested(name: &str) -> Option<&'static [BundleKind]> {
        let known = Self::REQUESTS.iter().find(|(own, _)| *own == name).map(|(_, kinds)| *kinds);
        known.or_else(|| {
            ENTRIES.iter().find(|entry| entry.name == name).map(|entry| slice::from_ref(&entry.kind))
        })
    }

    /// What a request may name.
    pub fn request_names() -> impl Iterator<Item = &'static str> + Clone {
        Self::REQUESTS.iter().map(|(name, _)| *name).chain(Self::ALL.into_iter().map(BundleKind::name))
    }

    /// All that is said of it.
    pub const fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// The function's name.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Whether it is objectives, or their derivatives, at an instant whose multipliers are given: where they name those of projections, too.
    pub const fn reads_objectives(self) -> bool {
        matches!(
            self,
            BundleKind::Objectives
                | BundleKind::IntegrandDerivatives
                | BundleKind::TerminalDerivatives
                | BundleKind::JointIntegrandDerivatives
                | BundleKind::JointTerminalDerivatives
        )
    }

    /// The bundle with this name.
    pub fn from_name(name: &str) -> Option<BundleKind> {
        BundleKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The parts of its list, and the result that has them.
    pub fn sections(self) -> Option<(&'static str, &'static [Section])> {
        match self.entry().sections {
            Sections::None => None,
            Sections::Like(other) => other.sections(),
            Sections::Of { result, sections, .. } => Some((result, sections)),
        }
    }
}
