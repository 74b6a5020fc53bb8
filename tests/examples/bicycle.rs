//! Prints the model file of the bicycle with p values of its splines: `cargo run --release -p mbs-tests --example bicycle -- 200 >
//! bicycle_200.yaml`.

fn main() {
    match std::env::args().nth(1).and_then(|p| p.parse::<usize>().ok()) {
        Some(p @ 4..=1000) if p % 2 == 0 => print!("{}", mbs_tests::bicycle::yaml(p)),
        _ => eprintln!("how many values? an even number from 4 to 1000"),
    }
}
