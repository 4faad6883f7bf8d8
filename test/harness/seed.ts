import fc from 'fast-check'

// Without TEST_SEED, each property chooses a seed and prints it if the property fails.
if (process.env.TEST_SEED) fc.configureGlobal({ seed: Number(process.env.TEST_SEED) % 2 ** 31 })
