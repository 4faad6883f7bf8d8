// npm run proof:mutants [MODULE...]: changes the pure modules with StrykerJS, and prints the changes that no
// test detects.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const version = '9.6.1'
const home = 'node_modules/.cache/stryker'
const stryker = `${home}/node_modules/@stryker-mutator`
const modules = JSON.parse(readFileSync('test/mutants/modules.json', 'utf8'))
const wanted = process.argv.slice(2)
const names = wanted.length > 0 ? wanted : Object.keys(modules)

// Stryker is installed in its own folder, because only this proof needs its many packages.
if (!existsSync(stryker)) {
  const packages = ['core', 'vitest-runner'].map((name) => `@stryker-mutator/${name}@${version}`)
  const flags = ['--no-save', '--legacy-peer-deps', '--ignore-scripts', '--silent']
  execFileSync('npm', ['install', '--prefix', home, ...flags, ...packages], { stdio: 'inherit' })
}

for (const name of names) {
  const { floor } = modules[name]
  const score = mutate(name, modules[name])
  const isFine = score >= floor
  if (!isFine) process.exitCode = 1
  const result = `${score?.toFixed(1)} % of the covered changes are detected`
  process.stdout.write(`${name}: ${result} (minimum ${floor} %)${isFine ? '' : ': TOO FEW'}\n`)
}

/**
 * Returns the percentage of covered mutants that tests detect. Mutants in `equal` do not count, because they
 * have no effect.
 */
function mutate(name, { files, tests, equal = {} }) {
  const report = `${home}/${name}.json`
  const config = `${home}/${name}.config.json`
  const log = `${home}/${name}.log`
  const options = {
    testRunner: 'vitest',
    plugins: [`./${stryker}/vitest-runner/dist/src/index.js`],
    mutate: files,
    coverageAnalysis: 'perTest',
    vitest: { configFile: 'test/mutants/vitest.config.ts', related: false },
    reporters: ['json'],
    jsonReporter: { fileName: report },
    concurrency: 2,
    // Stryker cannot read tsconfig.json with this version of TypeScript, and vitest does not need the file.
    tsconfigFile: 'none.json',
    tempDirName: `${home}/sandbox`,
    timeoutMS: 30_000,
    allowEmpty: true,
  }
  writeFileSync(config, JSON.stringify(options))
  rmSync(report, { force: true })
  const loaded = files.flatMap(expand)
  const env = { ...process.env, MUTANTS_TESTS: tests.join(' '), MUTANTS_FILES: loaded.join(' ') }
  const { status } = spawnSync(process.execPath, [`${stryker}/core/bin/stryker.js`, 'run', config], {
    env,
    stdio: ['ignore', openSync(log, 'w'), 'inherit'],
  })
  if (status !== 0 || !existsSync(report)) {
    process.stdout.write(`  ${name}: Stryker could not run the tests: see ${log}\n`)
    return undefined
  }
  const { files: found, testFiles } = JSON.parse(readFileSync(report, 'utf8'))
  const count = Object.values(testFiles).flatMap(({ tests }) => tests).length
  const mutants = Object.entries(found).flatMap(([file, { source, mutants }]) =>
    mutants.map((mutant) => ({ file, ...mutant, text: formatMutant(source, mutant) })),
  )
  const covered = mutants.filter(({ status }) => ['Killed', 'Timeout', 'Survived'].includes(status))
  // A static mutant may break a test file while it loads. Stryker then reports fewer completed tests instead
  // of a failure, so fewer tests count as a detection.
  const undetected = covered.filter(
    (mutant) => mutant.status === 'Survived' && !(mutant.static && mutant.testsCompleted < count),
  )
  const survivors = undetected.filter(({ text }) => !Object.hasOwn(equal, text))
  for (const { file, location, text } of survivors)
    process.stdout.write(`  ${file}:${location.start.line}: ${text}\n`)
  const excused = undetected.filter(({ text }) => Object.hasOwn(equal, text))
  const stale = Object.keys(equal).filter((text) => !excused.some((mutant) => mutant.text === text))
  for (const text of stale) {
    process.exitCode = 1
    const { status } = mutants.find((mutant) => mutant.text === text) ?? {}
    const reason =
      status === undefined
        ? 'no source has it'
        : status === 'NoCoverage'
          ? 'no test runs it'
          : 'tests detect it'
    process.stdout.write(`  ${name}: remove this change from "equal", because ${reason}: ${text}\n`)
  }
  const uncovered = mutants.filter(({ status }) => status === 'NoCoverage').length
  if (uncovered > 0) process.stdout.write(`  ${name}: these tests do not run ${uncovered} other changes\n`)
  const counted = covered.length - excused.length
  return (100 * (counted - survivors.length)) / counted
}

/** Returns the files of a pattern such as `{a,b}.ts` or `*.ts`. */
function expand(pattern) {
  const folder = dirname(pattern)
  if (pattern === `${folder}/*.ts`) return readdirSync(folder).map((name) => join(folder, name))
  const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? []
  return names === undefined ? [pattern] : names.split(',').map((name) => `${before}${name}${after}`)
}

/** Returns the mutated lines as one line, by which `equal` names a mutant. */
function formatMutant(source, { location: { start, end }, replacement }) {
  const lines = source.split('\n')
  const before = lines[start.line - 1].slice(0, start.column - 1)
  const after = lines[end.line - 1].slice(end.column - 1)
  return `${before}${replacement}${after}`.trim().replace(/\s+/g, ' ').slice(0, 160)
}
