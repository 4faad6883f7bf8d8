// Changes the pure modules in every small way, and tells which changes no test notices: npm run proof:mutants [module...]

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const version = '9.6.1'
const home = 'node_modules/.cache/stryker'
const stryker = `${home}/node_modules/@stryker-mutator`
const modules = JSON.parse(readFileSync('test/mutants/modules.json', 'utf8'))
const wanted = process.argv.slice(2)
const names = wanted.length > 0 ? wanted : Object.keys(modules)

// It needs more packages than parley itself, so that npm ci does without it.
if (!existsSync(stryker)) {
  const packages = ['core', 'vitest-runner'].map((name) => `@stryker-mutator/${name}@${version}`)
  const flags = ['--no-save', '--legacy-peer-deps', '--ignore-scripts', '--silent']
  execFileSync('npm', ['install', '--prefix', home, ...flags, ...packages], { stdio: 'inherit' })
}

for (const name of names) {
  const { files, tests, floor } = modules[name]
  const score = mutate(name, files, tests)
  const isFine = score >= floor
  if (!isFine) process.exitCode = 1
  const said = `${score?.toFixed(1)} % of the covered changes are noticed`
  process.stdout.write(`${name}: ${said} (floor ${floor})${isFine ? '' : ': TOO FEW'}\n`)
}

function mutate(name, files, tests) {
  const report = `${home}/${name}.json`
  const config = `${home}/${name}.config.json`
  const options = {
    testRunner: 'vitest',
    plugins: [`./${stryker}/vitest-runner/dist/src/index.js`],
    mutate: files,
    coverageAnalysis: 'perTest',
    vitest: { configFile: 'test/mutants/vitest.config.ts', related: false },
    reporters: ['json'],
    jsonReporter: { fileName: report },
    concurrency: 2,
    // Stryker cannot read it with the TypeScript that is here, and vitest does not need it.
    tsconfigFile: 'none.json',
    tempDirName: `${home}/sandbox`,
    timeoutMS: 30_000,
    allowEmpty: true,
  }
  writeFileSync(config, JSON.stringify(options))
  const env = { ...process.env, MUTANTS_TESTS: tests.join(' ') }
  const { status } = spawnSync(process.execPath, [`${stryker}/core/bin/stryker.js`, 'run', config], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) return undefined
  const found = Object.entries(JSON.parse(readFileSync(report, 'utf8')).files)
  const mutants = found.flatMap(([file, { mutants }]) => mutants.map((mutant) => ({ file, ...mutant })))
  const count = (...states) => mutants.filter(({ status }) => states.includes(status)).length
  for (const { file, location, replacement, mutatorName, status } of mutants)
    if (status === 'Survived') {
      const { line, column } = location.start
      process.stdout.write(
        `  ${file}:${line}:${column} ${mutatorName}: ${String(replacement).slice(0, 80)}\n`,
      )
    }
  const noticed = count('Killed', 'Timeout')
  return (100 * noticed) / (noticed + count('Survived'))
}
