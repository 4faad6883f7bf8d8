import fc from 'fast-check'

// Without one each property takes a seed of its own, which it tells if it fails.
if (process.env.TEST_SEED) fc.configureGlobal({ seed: Number(process.env.TEST_SEED) % 2 ** 31 })
