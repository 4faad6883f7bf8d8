import { resolve } from 'node:path'

// Loads the mutated modules before the tests. Otherwise the first test that runs a command would load them,
// and only this test would count as a test of the tables and patterns that a module creates once.
for (const file of process.env.MUTANTS_FILES?.split(' ') ?? []) await import(resolve(file))
