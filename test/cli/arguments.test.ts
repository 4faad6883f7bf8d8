import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { binary } from '../harness/process.ts'

const runInShell = (words: string) =>
  spawnSync('sh', ['-c', `"$0" "$1" chat --profile demo --dry-run ${words}`, process.execPath, binary], {
    encoding: 'utf8',
  })

test.each([
  ['a prompt', `"$(printf 'caf\\351')"`, 'caf\ufffd'],
  ['the value of a flag', `hi -m "$(printf '\\377')"`, '\ufffd'],
  ['a word after U+FFFD', `"a$(printf '\\357\\277\\275')" "b$(printf '\\377')"`, 'a\ufffd or b\ufffd'],
])('K31: parley exits with 2 if %s is not UTF-8 (needs Linux)', (_, words, named) => {
  const { status, stdout, stderr } = runInShell(words)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toBe(`parley: an argument is not UTF-8: ${named}\n`)
})

test('K31: parley sends an argument that contains U+FFFD (needs Linux)', () => {
  const { status, stdout } = runInShell(`"$(printf '\\357\\277\\275')" '' 'é字😀'`)
  expect(status).toBe(0)
  expect(JSON.parse(stdout).body.contents[0].parts[0].text).toBe('\ufffd  é字😀')
})
