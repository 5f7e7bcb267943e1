/// A fixed sequence of chance per seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that roll the same for the same seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`; 0 if there are none.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides.max(1)
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }

    /// Any number at all.
    pub fn bits(&mut self) -> u64 {
        self.roll(1 << 31) << 33 | self.roll(1 << 31) << 2 | self.roll(4)
    }

    /// An index into something of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.roll(length as u64)).unwrap()
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}
