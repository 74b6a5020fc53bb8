//! The inertial part of pair factors as sums of products: each of a number of the composite and a number of a motion, the same products for
//! every joint velocity, so that a loop over velocities computes them.
//!
//! Numbers of a composite: m 0, h 1, J 4 (xx, yy, zz, xy, xz, yz), 2p 10, R 13 by rows, f 22 (force, moment).
//! Numbers of a column S: linear 0, angular 3. Numbers of a motion: X 0, the angular part of Y 6, Z 9.

/// [row, from, middle, end] of sums, and their terms [number of the composite, number of the motion]; those from `middle` on are subtracted.
#[derive(Clone, Debug, Default)]
pub struct PairTerms {
    /// Sums.
    pub rows: Vec<[u32; 4]>,
    /// Terms, sum by sum.
    pub terms: Vec<[u32; 2]>,
}

/// Which numbers of the composites and of the motions are zero for all velocities.
pub struct Zeros<'a> {
    /// Of composites.
    pub composites: &'a dyn Fn(usize) -> bool,
    /// Of motions.
    pub motions: &'a dyn Fn(usize) -> bool,
}

const MASS: u32 = 0;
const MOMENT: u32 = 1;
const INERTIA: u32 = 4;
const TWICE_MOMENTUM: u32 = 10;
const RATE: u32 = 13;
const FORCE: u32 = 22;
const TORQUE: u32 = 25;

/// Terms of sums, by row; the last number is one for minus.
struct Sums(Vec<Vec<[u32; 3]>>);

impl Sums {
    fn new(rows: usize) -> Sums {
        Sums(vec![Vec::new(); rows])
    }

    /// rows += c × x, c of the composite and x of the motion; minus gives x × c.
    fn cross(&mut self, row: u32, c: u32, x: u32, minus: u32) {
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            self.0[(row + i) as usize].extend([[c + j, x + k, minus], [c + k, x + j, 1 - minus]]);
        }
    }

    /// rows += A x with the entries of A at `place`.
    fn apply(&mut self, row: u32, x: u32, place: impl Fn(u32, u32) -> u32) {
        for i in 0..3 {
            self.0[(row + i) as usize].extend((0..3).map(|j| [place(i, j), x + j, 0]));
        }
    }

    /// rows += I x: (m a + α × h, J α + h × a)
    fn inertia(&mut self, x: u32) {
        (0..3).for_each(|i| self.0[i as usize].push([MASS, x + i, 0]));
        self.cross(0, MOMENT, x + 3, 1);
        self.apply(3, x + 3, |i, j| INERTIA + if i == j { i } else { 2 + i + j });
        self.cross(3, MOMENT, x, 0);
    }

    /// Without terms that are zero.
    fn terms(self, zeros: &Zeros<'_>) -> PairTerms {
        let mut out = PairTerms::default();
        for (row, mut terms) in (0..).zip(self.0) {
            terms.retain(|&[c, x, _]| !(zeros.composites)(c as usize) && !(zeros.motions)(x as usize));
            let from = out.terms.len();
            let plus = terms.iter().filter(|&&[_, _, minus]| minus == 0).count();
            terms.sort_by_key(|&[_, _, minus]| minus);
            out.terms.extend(terms.iter().map(|&[c, x, _]| [c, x]));
            out.rows.push([row, from as u32, (from + plus) as u32, out.terms.len() as u32]);
        }
        out
    }
}

impl PairTerms {
    /// I S, six rows.
    pub fn inertia(zeros: &Zeros<'_>) -> PairTerms {
        let mut sums = Sums::new(6);
        sums.inertia(0);
        sums.terms(zeros)
    }

    /// I S and the angular part of (2B)ᵀ S, 2p × s + Rᵀ w: nine rows.
    pub fn carried(zeros: &Zeros<'_>) -> PairTerms {
        let mut sums = Sums::new(9);
        sums.inertia(0);
        sums.cross(6, TWICE_MOMENTUM, 0, 0);
        sums.apply(6, 3, |i, j| RATE + 3 * j + i);
        sums.terms(zeros)
    }

    /// I X + 2B Y + Z ×* f, six rows: 2B Y = (α × 2p, R α), Z ×* f = (w × F, w × n + v × F).
    pub fn turned(zeros: &Zeros<'_>) -> PairTerms {
        const Y: u32 = 6;
        const Z: u32 = 9;
        let mut sums = Sums::new(6);
        sums.inertia(0);
        sums.cross(0, TWICE_MOMENTUM, Y, 1);
        sums.apply(3, Y, |i, j| RATE + 3 * i + j);
        sums.cross(0, FORCE, Z + 3, 1);
        sums.cross(3, TORQUE, Z + 3, 1);
        sums.cross(3, FORCE, Z, 1);
        sums.terms(zeros)
    }
}
