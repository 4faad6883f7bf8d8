import { resolve } from 'node:path'

// A command loads modules when it runs. Without this, only the first test that runs the command would detect
// changes of what a module creates once, such as a table or a pattern.
for (const file of process.env.MUTANTS_FILES?.split(' ') ?? []) await import(resolve(file))
