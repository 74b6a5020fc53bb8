//! A program without std, heap and panic: `freestanding/` is built, run, and looked into.
//!
//! What the linked program shows, for integrators, elementary functions and every bundle of models with splines, Euler
//! parameters and inputs:
//!
//! - it needs neither std nor the heap nor a mathematical library: it imports nothing but what starts a program and
//!   the `mem*` functions that the compiler calls;
//! - no panic can be reached: whatever panics ends in the panic handler, and neither the handler nor any function of
//!   `core::panicking` is in the program. The same program with one index out of the compiler's sight has them, so the
//!   search finds what it looks for.

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod on_linux {
    use object::{Object, ObjectSymbol};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Text that only the panic handler refers to.
    const HANDLER: &[u8] = b"mbs-freestanding: the panic handler is reachable";

    /// What starts a program, what the compiler calls, and what the C library's start files ask for if it is there.
    const IMPORTS: [&str; 10] = [
        "__libc_start_main",
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "bcmp",
        "__cxa_finalize",
        "__gmon_start__",
        "_ITM_registerTMCloneTable",
        "_ITM_deregisterTMCloneTable",
    ];

    /// Builds the program in a folder of its own.
    fn build(folder: &str, features: &str) -> PathBuf {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("freestanding");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("freestanding");
        let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
            .args(["build", "--release", "--quiet", "--features", features])
            .arg("--manifest-path")
            .arg(package.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            // Flags for the tests (instruments, for example) may need std.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // What is not reached is left out at link time only.
            .env_remove("CARGO_PROFILE_RELEASE_LTO")
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let program = target.join(folder);
        std::fs::copy(target.join("release/mbs-freestanding"), &program).expect("linked");
        program
    }

    struct Contents {
        imports: Vec<String>,
        /// Symbols of panics.
        panics: Vec<String>,
        has_handler: bool,
        symbols: usize,
    }

    fn look_into(program: &Path) -> Contents {
        let data = std::fs::read(program).expect("readable");
        let file = object::File::parse(&*data).expect("an ELF file");
        let mut contents = Contents {
            imports: Vec::new(),
            panics: Vec::new(),
            has_handler: data.windows(HANDLER.len()).any(|window| window == HANDLER),
            symbols: 0,
        };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let name = symbol.name().expect("a name").split('@').next().unwrap_or_default().to_owned();
            contents.symbols += 1;
            if symbol.is_undefined() && !name.is_empty() {
                contents.imports.push(name.clone());
            }
            // Mangled names contain the words of their paths.
            if ["panic", "begin_unwind", "unwrap_failed", "expect_failed", "index_fail"]
                .iter()
                .any(|word| name.contains(word))
            {
                contents.panics.push(name);
            }
        }
        contents
    }

    #[test]
    fn runs_without_std_heap_and_panic() {
        let program = build("checked", "");
        let status = Command::new(&program).status().expect("it starts");
        assert_eq!(status.code(), Some(0), "the number of the first check that fails, see its `main.rs`");

        let contents = look_into(&program);
        assert!(contents.symbols > 50, "the symbols are there: {}", contents.symbols);
        for import in &contents.imports {
            assert!(IMPORTS.contains(&import.as_str()), "the program imports `{import}`");
        }
        assert!(contents.panics.is_empty(), "panics can be reached: {:#?}", contents.panics);
        assert!(!contents.has_handler, "the panic handler can be reached");

        let control = look_into(&build("control", "panics"));
        assert!(!control.panics.is_empty() && control.has_handler, "the search finds a panic that is there");
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
#[test]
#[ignore = "links and runs a program for x86_64 Linux with the GNU C library only"]
fn runs_without_std_heap_and_panic() {}
