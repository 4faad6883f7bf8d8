import { resolve } from 'node:path'

// Loads the mutated modules before the tests. A command loads its modules when it runs, so only the first
// test that runs the command would detect changes of tables and patterns that a module creates once.
for (const file of process.env.MUTANTS_FILES?.split(' ') ?? []) await import(resolve(file))
