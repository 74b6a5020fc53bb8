//! The method of Dormand and Prince of order 8 [Hairer, Nørsett, Wanner, Solving ODEs I: II.5, the code DOP853], for steps of equal size: twelve
//! evaluations a step. Where a gradient shall have six digits or more, no other method of this crate needs so few.
//!
//! Input: t, y, h. Output: y after the step. There is no error estimate and no dense output yet.

use super::explicit::Tableau;
use super::field::{self, Rates};
use super::fixed::FixedStep;
use super::{RungeKutta, combine_all, copy};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// The method of order 8, in fixed steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dop853;

const STAGES: usize = 12;

/// Rows of the matrix a.
const A: [&[f64]; STAGES] = [
    &[],
    &[0.052_600_151_958_767_73],
    &[0.019_725_056_984_537_9, 0.059_175_170_953_613_7],
    &[0.029_587_585_476_806_85, 0.0, 0.088_762_756_430_420_54],
    &[0.241_365_134_159_266_7, 0.0, -0.884_549_479_328_286_1, 0.924_834_003_261_792],
    &[0.037_037_037_037_037_035, 0.0, 0.0, 0.170_828_608_729_473_86, 0.125_467_687_566_822_42],
    &[0.037_109_375, 0.0, 0.0, 0.170_252_211_019_544_05, 0.060_216_538_980_455_96, -0.017_578_125],
    &[
        0.037_092_000_118_504_79,
        0.0,
        0.0,
        0.170_383_925_712_239_98,
        0.107_262_030_446_373_28,
        -0.015_319_437_748_624_402,
        0.008_273_789_163_814_023,
    ],
    &[
        0.624_110_958_716_075_7,
        0.0,
        0.0,
        -3.360_892_629_446_941_4,
        -0.868_219_346_841_726,
        27.592_099_699_446_71,
        20.154_067_550_477_894,
        -43.489_884_181_069_96,
    ],
    &[
        0.477_662_536_438_264_34,
        0.0,
        0.0,
        -2.488_114_619_971_667_7,
        -0.590_290_826_836_843,
        21.230_051_448_181_193,
        15.279_233_632_882_423,
        -33.288_210_968_984_86,
        -0.020_331_201_708_508_627,
    ],
    &[
        -0.937_142_430_085_987_3,
        0.0,
        0.0,
        5.186_372_428_844_064,
        1.091_437_348_996_729_5,
        -8.149_787_010_746_927,
        -18.520_065_659_996_96,
        22.739_487_099_350_505,
        2.493_605_552_679_652_3,
        -3.046_764_471_898_219_6,
    ],
    &[
        2.273_310_147_516_538,
        0.0,
        0.0,
        -10.534_495_466_737_25,
        -2.000_872_058_224_862_5,
        -17.958_931_863_118_8,
        27.948_884_529_419_96,
        -2.858_998_277_135_023_5,
        -8.872_856_933_530_63,
        12.360_567_175_794_303,
        0.643_392_746_015_763_6,
    ],
];

/// Weights b.
const B: [f64; STAGES] = [
    0.054_293_734_116_568_765,
    0.0,
    0.0,
    0.0,
    0.0,
    4.450_312_892_752_409,
    1.891_517_899_314_500_3,
    -5.801_203_960_010_585,
    0.311_164_366_957_819_9,
    -0.152_160_949_662_516_1,
    0.201_365_400_804_030_34,
    0.044_710_615_727_772_59,
];

/// Nodes c: sums of the rows of a.
const C: [f64; STAGES] = [
    0.0,
    0.052_600_151_958_767_73,
    0.078_900_227_938_151_6,
    0.118_350_341_907_227_4,
    0.281_649_658_092_772_6,
    1.0 / 3.0,
    0.25,
    4.0 / 13.0,
    127.0 / 195.0,
    0.6,
    6.0 / 7.0,
    1.0,
];

impl Dop853 {
    /// Length of the scratch a step needs, at least; a constant for generated models.
    pub const fn scratch_len(dims: &Dims) -> usize {
        (STAGES + 1) * dims.state() + field::scratch_len(dims)
    }
}

impl FixedStep for Dop853 {}

impl RungeKutta for Dop853 {
    const TABLEAU: Tableau = Tableau { a: &A, b: &B, c: &C, gamma: 0.0 };

    /// The rates, and where a stage is evaluated.
    type Stages<'a, S: Scalar> = ([&'a mut [S]; STAGES], &'a mut [S]);

    #[inline(always)]
    fn memory_len(n: usize) -> usize {
        (STAGES + 1) * n
    }

    #[inline(always)]
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError> {
        let mut k: [&'a mut [S]; STAGES] = Default::default();
        for k in &mut k {
            *k = pieces.next(n)?;
        }
        Ok((k, pieces.next(n)?))
    }

    #[inline(always)]
    fn advance<F: Rates>(
        field: &mut F,
        (mut k, next): Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError> {
        field.begin_step(t, t + h);
        for (i, (a, c)) in A.iter().zip(C).enumerate() {
            let Some((before, [now, ..])) = k.split_at_mut_checked(i) else { break };
            combine_all(next, y, h, a, before);
            field.rate(t + F::S::from_f64(c) * h, c, next, now)?;
        }
        combine_all(next, y, h, &B, &k);
        field.finish(t + h, next)?;
        copy(y, next);
        Ok(())
    }
}
