//! Bytes of code: what the functions of a module take in a linked program, or in an object file.
//!
//! Input: an ELF file that is not stripped. Output: bytes of each bundle, of the runtime and of elementary functions. Names of functions are
//! read as they are mangled, by either of Rust's manglings: identifiers are preceded by their lengths.

use crate::session::failure::Failure;
use crate::session::files;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Longest program that is read.
const LONGEST: u64 = 1 << 30;

/// Bytes of a program.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Code {
    /// Of the functions of each bundle, by its name.
    pub(super) bundles: BTreeMap<String, u64>,
    /// Of the module's other functions.
    pub(super) module: u64,
    /// Of the runtime, which is compiled for the module.
    pub(super) runtime: u64,
    /// Of elementary functions.
    pub(super) functions: u64,
    /// Of all code.
    pub(super) all: u64,
    /// Of all constants, outside of the code.
    pub(super) constants: u64,
    /// Of static memory, that with initial values and that without.
    pub(super) memory: [u64; 2],
}

impl Code {
    /// Of the module in a program.
    pub(super) fn read(path: &Path, module: &str, bundles: &[&str]) -> Result<Code, Failure> {
        let fail = |what: String| Failure::error(format!("cannot read `{}`: {what}", path.display()));
        let length = fs::metadata(path).map_err(|error| fail(files::reason(&error)))?.len();
        if length > LONGEST {
            return Err(fail("it is longer than 1 GiB".into()));
        }
        let bytes = fs::read(path).map_err(|error| fail(files::reason(&error)))?;
        let file = object::File::parse(&*bytes)
            .map_err(|error| fail(format!("{error}; a linked program in ELF format is wanted")))?;
        let mut code = Code::default();
        for section in file.sections() {
            match section.kind() {
                SectionKind::Text => code.all += section.size(),
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => code.constants += section.size(),
                SectionKind::Data => code.memory[0] += section.size(),
                SectionKind::UninitializedData => code.memory[1] += section.size(),
                _ => {}
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for symbol in file.symbols() {
            // Several names of one function count once.
            if symbol.kind() == object::SymbolKind::Text && symbol.size() > 0 && seen.insert(symbol.address())
            {
                code.add(symbol.name().unwrap_or_default(), symbol.size(), module, bundles);
            }
        }
        if code.bundles.is_empty() && code.module == 0 {
            return Err(fail(format!(
                "it has no function of the module `{module}`: it is another program, or stripped"
            )));
        }
        Ok(code)
    }

    fn add(&mut self, name: &str, size: u64, module: &str, bundles: &[&str]) {
        let own = format!("{}{module}", module.len());
        // A crate may have the name of its module.
        let mut after = name.match_indices(&own).filter_map(|(place, own)| name.get(place + own.len()..));
        let belongs = after.clone().next().is_some();
        let bundle = after.find_map(|after| bundle_of(identifier(after)?, bundles));
        if let Some(bundle) = bundle {
            *self.bundles.entry(bundle.into()).or_default() += size;
        } else if name.contains("11mbs_runtime") {
            self.runtime += size;
        } else if belongs {
            self.module += size;
        } else if name.contains("4libm") {
            self.functions += size;
        }
    }
}

/// The identifier at the beginning of mangled text, after its length.
fn identifier(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (length, rest) = text.split_at(digits);
    rest.get(..length.parse().ok()?)
}

/// The bundle to which a function belongs: its own, a segment of it (`newton_3`), or either for several columns (`solve_lanes_1`).
fn bundle_of<'a>(function: &str, bundles: &[&'a str]) -> Option<&'a str> {
    let whole = match function.rsplit_once('_') {
        Some((whole, segment)) if segment.bytes().all(|byte| byte.is_ascii_digit()) => whole,
        _ => function,
    };
    let whole = whole.strip_suffix("_lanes").unwrap_or(whole);
    bundles.iter().copied().find(|&bundle| bundle == whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_either_mangling() {
        let mut code = Code::default();
        for (name, size) in [
            ("_RNvNtNtCs260Z2jY7F5_12mbs_embedded6models8five_bar6newton", 1),
            ("_RNvNtNtCs260Z2jY7F5_12mbs_embedded6models8five_bar8newton_1", 2),
            ("_ZN12mbs_embedded6models8five_bar11linearise_017h0123456789abcdefE", 4),
            ("_RNvNtNtCs260Z2jY7F5_12mbs_embedded6models8five_bar13solve_lanes_0", 8),
            (
                "_RNvXsb_NtNtCs2_12mbs_embedded6models8five_barNtB5_5ModelNtNtCs_11mbs_runtime11constrained6newton",
                16,
            ),
            ("_RNvNtNtCs260Z2jY7F5_12mbs_embedded6models8five_bar5other", 32),
            ("_ZN8five_bar8five_bar6factor17h0123456789abcdefE", 512),
            ("_RNvNtNtCselQoFC7xTRg_4libm4math3sin3sin", 64),
            ("_RNvNtNtCs260Z2jY7F5_12mbs_embedded6models8four_bar6newton", 128),
            ("99999999999999999999999x8five_bar99999999999999999999999newton", 256),
        ] {
            code.add(name, size, "five_bar", &["factor", "newton", "linearise", "solve"]);
        }
        let expected = [("factor", 512), ("linearise", 4), ("newton", 3), ("solve", 8)]
            .map(|(name, size)| (name.into(), size));
        assert_eq!(code.bundles, BTreeMap::from(expected));
        assert_eq!((code.runtime, code.module, code.functions), (16, 32 + 256, 64));
    }

    #[test]
    fn files_that_are_no_programs_are_refused() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        for path in [&manifest, Path::new("no/such/file"), Path::new(env!("CARGO_MANIFEST_DIR"))] {
            assert!(Code::read(path, "five_bar", &["newton"]).is_err());
        }
        // This program has no such module.
        let own = std::env::current_exe().expect("a program");
        assert!(Code::read(&own, "no_such_module", &["newton"]).is_err());
    }
}
