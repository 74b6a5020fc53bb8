//! The five-bar linkage by ALI3-P with its gradient in single precision, and nothing else (features: `double`, `without_gradient`): what it takes of flash and RAM.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod firmware {
    use core::hint::black_box;
    #[cfg(target_arch = "arm")]
    use cortex_m_rt::entry;
    #[cfg(feature = "double")]
    use mbs_embedded::models::five_bar;
    #[cfg(not(feature = "double"))]
    use mbs_embedded::models::single::five_bar;
    #[cfg(target_arch = "riscv64")]
    use riscv_rt::entry;

    #[entry]
    fn main() -> ! {
        loop {
            let parameters = black_box(five_bar::Parameters::default());
            #[cfg(not(feature = "without_gradient"))]
            black_box(gradient(&parameters));
            black_box(steps(&parameters));
        }
    }

    #[cfg(not(feature = "without_gradient"))]
    /// Not inlined, like [`steps`]: the memory of one is that of the other.
    #[inline(never)]
    fn gradient(parameters: &five_bar::Parameters) -> Option<five_bar::Gradient> {
        let mut memory = <five_bar::GradientMemory as mbs_runtime::named::Memory>::ZERO;
        five_bar::gradient_with(&five_bar::Setup::new(*parameters), black_box(&mut memory)).ok()
    }

    #[inline(never)]
    fn steps(parameters: &five_bar::Parameters) -> Option<()> {
        let mut simulation = five_bar::Simulation::new(*parameters).ok()?;
        loop {
            simulation.step().ok()?;
            black_box(simulation.z());
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("for microcontrollers: see README.md");
}
