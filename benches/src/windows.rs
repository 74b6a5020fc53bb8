/// Windows of the measured four-bar mechanisms.
pub const WINDOWS: [usize; 6] = [1, 2, 5, 10, 20, 40];
