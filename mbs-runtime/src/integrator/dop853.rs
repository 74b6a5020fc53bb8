//! The method of Dormand and Prince of order 8 with its error estimates of orders 5 and 3 and its dense output of order 7 [Hairer, Nørsett,
//! Wanner, Solving ODEs I: II.5, II.6 and the code DOP853]: twelve evaluations a step, four more in a step that is looked into.
//!
//! Input: t, y, h. Output: y after the step, with the twelve stages kept in the scratch for error and dense output. Where a gradient shall have
//! six digits or more, no other method of this crate needs so few evaluations.
//!
//! The stages k2 to k5 have no weight in solution, errors and dense output. Once the step is made, their places hold the second error
//! estimate and the three stages that dense output needs besides; the rate at the end of the step has one of its own, and is not handed on, so that a
//! run does not depend on who looks into its steps. Euler parameters are renormalised, and what the system corrects is corrected, before that rate is
//! evaluated. These corrections move y by its local error, O(h⁹), and the dense output, which runs to the corrected end, by O(h⁹) against O(h⁸): no
//! order is lost.

use super::controlled::{Controlled, Ends, Estimated};
use super::explicit::Tableau;
use super::field::{self, Rates};
use super::fixed::FixedStep;
use super::{RungeKutta, add_all, combine_all, copy};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// The method of order 8. By itself it makes fixed steps; [`Adaptive`](super::Adaptive) controls its error.
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

/// Weights of the error estimate of order 5.
const E5: [f64; STAGES] = [
    0.013_120_044_994_194_88,
    0.0,
    0.0,
    0.0,
    0.0,
    -1.225_156_446_376_204_4,
    -0.495_758_949_657_250_2,
    1.664_377_182_454_986_4,
    -0.350_328_848_749_973_66,
    0.334_179_118_713_017_5,
    0.081_923_206_485_115_71,
    -0.022_355_307_863_886_294,
];

/// b minus the weights of order 3, of k1, k9 and k12.
const E3: [f64; STAGES] = [
    B[0] - 31.0 / 127.0,
    B[1],
    B[2],
    B[3],
    B[4],
    B[5],
    B[6],
    B[7],
    B[8] - 12_675.0 / 17_272.0,
    B[9],
    B[10],
    B[11] - 3.0 / 136.0,
];

/// Nodes of the stages of dense output,
const MORE_C: [f64; 3] = [0.1, 0.2, 7.0 / 9.0];

/// their places among the rates, those of stages without weights,
const MORE: [usize; 3] = [2, 3, 4];

/// and their rows of a, of the rates as they are kept then: k1, none, k14, k15, k16, k6 to k12, k13.
const MORE_A: [[f64; STAGES + 1]; 3] = [
    [
        0.056_167_502_283_047_954,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.253_500_210_216_624_83,
        -0.246_239_037_470_802_5,
        -0.124_191_423_263_816_37,
        0.153_291_798_278_765_68,
        0.008_201_052_295_634_69,
        0.007_567_897_660_545_699,
        -0.008_298,
    ],
    [
        0.031_834_648_163_502_14,
        0.0,
        0.141_312_443_674_632_5,
        0.0,
        0.0,
        0.028_300_909_672_366_776,
        0.053_541_988_307_438_566,
        -0.054_923_748_571_390_99,
        0.0,
        0.0,
        -0.000_108_347_328_697_249_32,
        0.000_382_571_090_835_658_4,
        -0.000_340_465_008_687_404_56,
    ],
    [
        -0.428_896_301_583_791_94,
        0.0,
        2.947_514_789_152_772_4,
        -9.150_958_472_179_87,
        0.0,
        -4.697_621_415_361_164,
        7.683_421_196_062_599,
        4.068_989_818_397_11,
        0.356_727_187_455_281_1,
        0.0,
        0.0,
        0.0,
        -0.001_399_024_165_159_014_5,
    ],
];

/// Weights of the last four terms of the dense output, of the same rates.
const D: [[f64; STAGES + 1]; 4] = [
    [
        -8.428_938_276_109_013,
        0.0,
        18.148_505_520_854_727,
        -9.194_632_392_478_356,
        -4.436_036_387_594_894,
        0.566_714_953_519_377_7,
        -3.068_949_945_949_891_7,
        2.384_667_656_512_07,
        2.117_034_582_445_028,
        -0.871_391_583_777_973,
        2.240_437_430_260_788_3,
        0.631_578_778_769_468_8,
        -0.088_990_336_451_333_31,
    ],
    [
        10.427_508_642_579_134,
        0.0,
        -31.139_403_219_565_178,
        -9.352_924_358_844_48,
        35.816_841_486_394_08,
        242.283_491_775_258_17,
        165.200_451_717_270_28,
        -374.546_754_722_690_2,
        -22.113_666_853_125_306,
        7.733_432_668_472_264,
        -30.674_084_731_089_398,
        -9.332_130_526_430_229,
        15.697_238_121_770_845,
    ],
    [
        19.985_053_242_002_433,
        0.0,
        -60.196_695_231_264_12,
        84.320_405_506_677_16,
        11.992_291_136_182_79,
        -387.037_308_749_351_8,
        -189.178_138_195_167_58,
        527.808_159_205_423_6,
        -11.573_902_539_959_63,
        6.881_232_694_696_3,
        -1.000_605_096_691_083_8,
        0.777_713_779_805_344_3,
        -2.778_205_752_353_508,
    ],
    [
        -25.693_933_462_703_75,
        0.0,
        96.324_553_959_188_28,
        -39.177_261_675_615_44,
        -149.726_836_257_985_64,
        -154.189_748_690_236_43,
        -231.529_379_176_045_5,
        357.639_117_910_614_1,
        93.405_324_183_624_32,
        -37.458_323_136_451_63,
        104.099_649_508_962_3,
        29.840_293_426_660_5,
        -43.533_456_590_011_14,
    ],
];

/// A step in the scratch: where it began, where it ended, its stages and the rate at its end.
pub(crate) struct Stages<'a, S> {
    y0: &'a mut [S],
    y1: &'a mut [S],
    k: [&'a mut [S]; STAGES + 1],
    /// Where a stage is evaluated; the error and states within the step once it is made.
    spare: &'a mut [S],
}

impl Dop853 {
    /// Length of the scratch a step needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        Self::MEMORY * dims.state() + field::scratch_len(dims)
    }
}

impl<S: Scalar> Stages<'_, S> {
    /// From y0 and k1: k2 to k12, and y1 as steps end.
    #[inline(always)]
    fn solve<F: Rates<S = S>>(&mut self, field: &mut F, t: S, h: S) -> Result<(), EvalError> {
        let Self { y0, y1, k, .. } = self;
        for (i, (a, c)) in A.iter().zip(C).enumerate().skip(1) {
            let Some((before, [now, ..])) = k.split_at_mut_checked(i) else { break };
            combine_all(y1, y0, h, a, before);
            field.rate(t + S::from_f64(c) * h, c, y1, now)?;
        }
        combine_all(y1, y0, h, &B, k);
        field.finish(t + h, y1)
    }

    /// Forgets the last rate of dense output: one that is known is finite.
    #[inline(always)]
    fn forget(&mut self) {
        if let Some(first) = self.k[MORE[2]].first_mut() {
            *first = S::from_f64(f64::NAN);
        }
    }

    /// The rate at the end `t1` of the step, and the stages of dense output.
    #[inline(always)]
    fn extend<F: Rates<S = S>>(&mut self, field: &mut F, t: S, h: S, t1: S) -> Result<(), EvalError> {
        let Self { y0, y1, k, spare } = self;
        field.begin_step(t, t1);
        let [.., end] = k;
        field.rate(t1, 1.0, y1, end)?;
        for ((a, c), place) in MORE_A.iter().zip(MORE_C).zip(MORE) {
            combine_all(spare, y0, h, a, k);
            if let Some(now) = k.get_mut(place) {
                field.rate(t + S::from_f64(c) * h, c, spare, now)?;
            }
        }
        Ok(())
    }
}

/// Whether a rate is known.
#[inline(always)]
fn is_known<S: Scalar>(k: &[S]) -> bool {
    k.first().is_none_or(|first| first.is_finite())
}

impl FixedStep for Dop853 {}

impl RungeKutta for Dop853 {
    const TABLEAU: Tableau = Tableau { a: &A, b: &B, c: &C, gamma: 0.0 };

    const MEMORY: usize = STAGES + 4;

    type Stages<'a, S: Scalar> = Stages<'a, S>;

    #[inline(always)]
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError> {
        let mut k: [&'a mut [S]; STAGES + 1] = Default::default();
        for k in &mut k {
            *k = pieces.next(n)?;
        }
        Ok(Stages { y0: pieces.next(n)?, y1: pieces.next(n)?, k, spare: pieces.next(n)? })
    }

    #[inline(always)]
    fn advance<F: Rates>(
        field: &mut F,
        mut stages: Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError> {
        copy(stages.y0, y);
        field.begin_step(t, t + h);
        let [first, ..] = &mut stages.k;
        field.rate(t, C[0], stages.y0, first)?;
        stages.solve(field, t, h)?;
        copy(y, stages.y1);
        Ok(())
    }
}

impl Controlled for Dop853 {}

impl Estimated for Dop853 {
    const EXPONENT: f64 = 1.0 / 8.0;

    /// As the code DOP853.
    const PREVIOUS: f64 = 0.0;

    #[inline(always)]
    fn ends<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>) -> Ends<'s, S> {
        let Stages { y0, y1, k: [first, second, ..], spare } = stages;
        Ends { y0, y1, first, spare, second: Some(second) }
    }

    #[inline(always)]
    fn hand_on<S: Scalar>(_: &mut Self::Stages<'_, S>) -> bool {
        false
    }

    #[inline(always)]
    fn solve<F: Rates>(
        stages: &mut Self::Stages<'_, F::S>,
        field: &mut F,
        t: F::S,
        h: F::S,
        _: F::S,
    ) -> Result<(), EvalError> {
        let solved = stages.solve(field, t, h);
        stages.forget();
        solved
    }

    #[inline(always)]
    fn error<S: Scalar>(stages: &mut Self::Stages<'_, S>, h: S) {
        let Stages { k, spare, .. } = stages;
        let [first, second, others @ ..] = k;
        for (to, [of_first, _, weights @ ..]) in [(&mut **spare, &E5), (&mut **second, &E3)] {
            to.fill(S::ZERO);
            add_all(to, &[*of_first], core::slice::from_ref(first));
            add_all(to, weights, others);
            for e in to.iter_mut() {
                *e *= h;
            }
        }
    }

    #[inline(always)]
    fn extend<F: Rates>(
        stages: &mut Self::Stages<'_, F::S>,
        field: &mut F,
        t: F::S,
        h: F::S,
        t1: F::S,
    ) -> Result<(), EvalError> {
        if is_known(stages.k[MORE[2]]) {
            return Ok(());
        }
        let extended = stages.extend(field, t, h, t1);
        if extended.is_err() {
            stages.forget();
        }
        extended
    }

    /// ```text
    /// y = y0 + θ (r1 + θ' (r2 + θ (r3 + θ' (r4 + θ (r5 + θ' (r6 + θ r7))))))    θ' = 1 − θ                [II.6, code DOP853]
    /// r1 = y1 − y0    r2 = h k1 − r1    r3 = r1 − h k13 − r2    r4 to r7 = h Σ d k
    /// ```
    #[inline(always)]
    fn dense<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>, h: S, theta: S) -> Option<&'s mut [S]> {
        let Stages { y0, y1, k, spare } = stages;
        if !is_known(k[MORE[2]]) {
            return None;
        }
        let rest = S::ONE - theta;
        // r4 + θ (r5 + θ' (r6 + θ r7)), with one weight for each rate
        let [d4, d5, d6, d7] = &D;
        spare.fill(S::ZERO);
        for (i, k) in k.iter().enumerate().filter(|(i, _)| *i != 1) {
            let [d4, d5, d6, d7] = [d4, d5, d6, d7].map(|d| S::from_f64(d.get(i).copied().unwrap_or(0.0)));
            crate::linear::add_scaled(spare, d4 + theta * (d5 + rest * (d6 + theta * d7)), k);
        }
        let [first, .., end] = k;
        let ends = y0.iter().zip(y1.iter()).zip(first.iter().zip(end.iter()));
        for (y, ((&y0, &y1), (&first, &end))) in spare.iter_mut().zip(ends) {
            let r1 = y1 - y0;
            let r2 = h * first - r1;
            let r3 = r1 - h * end - r2;
            *y = y0 + theta * (r1 + rest * (r2 + theta * (r3 + rest * (h * *y))));
        }
        Some(spare)
    }
}
