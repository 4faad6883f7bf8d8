import fc from 'fast-check'

// Without a seed, each property chooses one and prints it if it fails.
if (process.env.TEST_SEED) fc.configureGlobal({ seed: Number(process.env.TEST_SEED) % 2 ** 31 })
