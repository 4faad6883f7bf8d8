import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { childEnvironment } from '../harness/environment.ts'
import { readText, temporaryFolder } from '../harness/run.ts'

interface Workflow {
  on: unknown
  permissions: Record<string, string>
  jobs: Record<
    string,
    {
      permissions?: Record<string, string>
      strategy?: { matrix: { node: string[]; include: { node: string }[] } }
      environment?: string
      steps?: { name?: string; uses?: string; run?: string }[]
    }
  >
}

const root = join(import.meta.dirname, '../..')
const folder = join(root, '.github/workflows')
const sources = new Map(readdirSync(folder).map((name) => [name, readText(folder, name)] as const))
const { 'ci.yml': ci, 'release.yml': release } = Object.fromEntries(
  [...sources].map(([name, source]) => [name, parse(source) as Workflow]),
)

test('workflows pin third-party actions to a commit, not to a tag', () => {
  for (const [name, source] of sources) {
    for (const [line] of source.matchAll(/^.*\buses: .*$/gm))
      expect(line, name).toMatch(/uses: (\.\/|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/)
  }
})

test('only two workflow jobs have more than read permission, and neither job runs code of the project', () => {
  const workflows = [...sources.values()].map((source) => parse(source) as Workflow)
  for (const { permissions } of workflows) expect(permissions).toEqual({ contents: 'read' })
  const privileged = workflows.flatMap(({ jobs }) => Object.values(jobs).filter((job) => job.permissions))
  const steps = privileged.map(({ permissions, steps = [] }) => [
    permissions,
    ...steps.map(({ uses, run }) => uses?.split('@')[0] ?? run?.split(' ', 2).join(' ')),
  ])
  expect(steps).toEqual([
    [{ 'id-token': 'write' }, 'actions/download-artifact', 'actions/setup-node', 'npm publish'],
    [{ contents: 'write' }, 'actions/download-artifact', 'gh release'],
  ])
})

test('a release starts by hand, and is published with provenance after a person has approved it', () => {
  expect(release?.on).toBe('workflow_dispatch')
  const { environment, steps = [] } = release?.jobs.publish ?? {}
  expect(environment).toBe('npm')
  expect(steps.at(-1)?.run).toMatch(/^npm publish .* --provenance$/)
})

test('the tests run on the oldest Node that the package supports', () => {
  const { node = [], include = [] } = ci?.jobs.test?.strategy?.matrix ?? {}
  const oldest = manifest.engines.node.replace('>=', '')
  expect([...node, ...include.map((more) => more.node)].map(String)).toContain(`${oldest}.0`)
  expect(manifest.scripts['test:compat']).toContain(`'${oldest}.0 ${node.join(' ')}'`)
})

const check = release?.jobs.pack?.steps?.find(({ name }) => name?.startsWith('Compare the ver'))?.run ?? ''
const dated = `# Changes\n\n## 1.10.0 - 2026-11-21\n\n- This.\n\n## 1.1.0 - 2026-01-01\n\n- That.\n`

test.each<[rule: string, ref: string, version: string, changes: string, notes?: string]>([
  ['takes its notes from CHANGELOG.md', 'refs/tags/v1.10.0', '1.10.0', dated, '\n- This.\n\n'],
  ['may be older than the newest version in CHANGELOG.md', 'refs/tags/v1.1.0', '1.1.0', dated, '\n- That.\n'],
  ['needs the tag of its version', 'refs/tags/v1.10.0', '1.1.0', dated],
  ['needs a tag, not a branch', 'refs/heads/v1.1.0', '1.1.0', dated],
  ['needs a version of three numbers', 'refs/tags/v1.1', '1.1', dated],
  ['needs a version without a suffix', 'refs/tags/v1.1.0-rc.1', '1.1.0-rc.1', dated],
  ['needs a date in CHANGELOG.md', 'refs/tags/v1.10.0', '1.10.0', dated.replace('2026-11-21', 'unreleased')],
  ['needs a change in CHANGELOG.md', 'refs/tags/v1.10.0', '1.10.0', dated.replace('- This.', '')],
])('a release %s (needs bash and awk)', (_, ref, version, changes, notes) => {
  const cwd = temporaryFolder({ 'package.json': JSON.stringify({ version }), 'CHANGELOG.md': changes })
  const { status, stdout } = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', check], {
    cwd,
    env: { ...childEnvironment, GITHUB_REF: ref },
    encoding: 'utf8',
  })
  expect(status).toBe(notes === undefined ? 1 : 0)
  const printed = notes === undefined ? stdout : readText(cwd, 'notes.md')
  expect(printed).toEqual(notes ?? expect.stringMatching(/^::error::/))
})

test('CHANGELOG.md has a section for the version in package.json', () => {
  expect(readText(root, 'CHANGELOG.md')).toContain(`\n## ${manifest.version} - `)
})
