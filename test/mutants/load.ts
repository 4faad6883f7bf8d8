import { resolve } from 'node:path'

// A command loads what it needs when it runs. The first test that runs it would count as the only one that what is made
// then, once, has an effect on: a table, a pattern.
for (const file of process.env.MUTANTS_FILES?.split(' ') ?? []) await import(resolve(file))
