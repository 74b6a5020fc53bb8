//! Tells the linker where the memory of the target is described.

fn main() {
    println!("cargo::rerun-if-changed=link");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (root, arch) = (variable("CARGO_MANIFEST_DIR"), variable("CARGO_CFG_TARGET_ARCH"));
    if variable("CARGO_CFG_TARGET_OS") == "none" {
        println!("cargo::rustc-link-search={root}/link/{arch}");
    }
}
