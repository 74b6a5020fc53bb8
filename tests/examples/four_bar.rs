//! Prints the model file of the N four-bar mechanism: `cargo run --release -p mbs-tests --example four_bar -- 40 > four_bar_40.yaml`.

fn main() {
    match std::env::args().nth(1).and_then(|n| n.parse().ok()) {
        Some(windows @ 1..=1000) => print!("{}", mbs_tests::four_bar::yaml(windows)),
        _ => eprintln!("how many windows? a number from 1 to 1000"),
    }
}
