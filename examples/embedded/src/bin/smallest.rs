//! The five-bar linkage by ALI3-P with its gradient in single precision, and nothing else: what it takes of flash and RAM.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod firmware {
    use core::hint::black_box;
    #[cfg(target_arch = "arm")]
    use cortex_m_rt::entry;
    use mbs_embedded::board as _;
    use mbs_embedded::models::single::five_bar::{
        GradientMemory, Parameters, Setup, Simulation, gradient_with,
    };
    #[cfg(target_arch = "riscv64")]
    use riscv_rt::entry;

    #[entry]
    fn main() -> ! {
        let mut memory = <GradientMemory as mbs_runtime::named::Memory>::ZERO;
        loop {
            let parameters = black_box(Parameters::default());
            let _ = black_box(gradient_with(&Setup::new(parameters), &mut memory).is_ok());
            if let Ok(mut simulation) = Simulation::new(parameters) {
                while simulation.step().is_ok() {
                    black_box(simulation.z());
                }
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("for microcontrollers: see README.md");
}
