//! What one seed stands for: a file's name, its text, and what is asked of the generator.

use super::{FREE_TEXTS, bytes, corpus, grammar, mutate};
use crate::random_model::Random;
use mbs_codegen::Request;
use mbs_codegen::emission::Target;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Fma, Options, Pairs, ScalarType};

/// One try.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where it comes from.
    pub seed: u64,
    /// Name of the file, hostile at times.
    pub file: String,
    /// Its text.
    pub text: String,
    /// What to generate.
    pub request: Request,
    /// Whether to parse what is generated, which is slow.
    pub parse: bool,
    /// Whether to generate twice and compare.
    pub twice: bool,
}

/// The input of a seed: a tenth arbitrary text, the rest damaged files and files of the format's shape by halves.
pub fn of_seed(seed: u64) -> Input {
    let mut r = Random::new(seed);
    let text = match r.below(20) {
        0 | 1 => bytes::text(&mut r),
        2..10 => {
            let good = corpus::good_file(&mut r);
            mutate::mutate(&mut r, &good)
        }
        _ => {
            let text = grammar::text(&mut r);
            if r.chance(0.1) { mutate::mutate(&mut r, &text) } else { text }
        }
    };
    let file = match r.below(4) {
        // A file's name may become the module's, so it is no sign of an escape.
        0 => format!("folder/{}.yaml", FREE_TEXTS[r.below(FREE_TEXTS.len())].replace(super::CANARY, "file")),
        _ => "model.yaml".into(),
    };
    Input {
        seed,
        file,
        text,
        request: request(&mut r),
        parse: r.chance(1.0 / 16.0),
        twice: r.chance(1.0 / 32.0),
    }
}

fn request(r: &mut Random) -> Request {
    let bundles = match r.below(4) {
        0 => BundleKind::ALL.to_vec(),
        1 => BundleKind::ALL.into_iter().filter(|_| r.chance(0.3)).collect(),
        _ => BundleKind::STANDARD.to_vec(),
    };
    let reference = if r.chance(0.5) { ReferencePoint::Origin } else { ReferencePoint::CentreOfMass };
    let pairs = [Pairs::Auto, Pairs::Flat, Pairs::Rolled][r.below(3)];
    let scalar = if r.chance(0.2) { ScalarType::F32 } else { ScalarType::F64 };
    let fma = if r.chance(0.3) { Fma::Never } else { Fma::Target };
    let module =
        r.chance(0.2).then(|| FREE_TEXTS[r.below(FREE_TEXTS.len())].replace(super::CANARY, "module"));
    Request {
        options: Options {
            reference,
            freeze: r.chance(0.25),
            bundles,
            pairs,
            scalar,
            fma,
            ..Options::default()
        },
        target: Target { module, ..Target::default() },
        case: r.chance(0.15).then(|| ["c0", "c1", "pushed", "no such case"][r.below(4)].into()),
    }
}
