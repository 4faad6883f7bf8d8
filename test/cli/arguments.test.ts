import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { binary } from '../harness/process.ts'

const say = (words: string) =>
  spawnSync('sh', ['-c', `"$0" "$1" chat --profile demo --dry-run ${words}`, process.execPath, binary], {
    encoding: 'utf8',
  })

test.each([
  ['a prompt', `"$(printf 'caf\\351')"`, 'caf\ufffd'],
  ['a value', `hi -m "$(printf '\\377')"`, '\ufffd'],
  ['after one that is', `é "$(printf 'x\\302')" ''`, 'x\ufffd'],
  ['half a character', `"$(printf '\\360\\237\\230')"`, '\ufffd'],
  ['after U+FFFD itself', `"a$(printf '\\357\\277\\275')" "b$(printf '\\377')"`, 'a\ufffd or b\ufffd'],
])('K31: an argument that is not UTF-8 is exit 2: %s (needs Linux)', (_, words, named) => {
  const { status, stdout, stderr } = say(words)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toBe(`parley: an argument is not UTF-8: ${named}\n`)
})

test('K31: an argument that holds U+FFFD itself is sent (needs Linux)', () => {
  const { status, stdout } = say(`"$(printf '\\357\\277\\275')" '' 'é字😀'`)
  expect(status).toBe(0)
  expect(JSON.parse(stdout).body.contents[0].parts[0].text).toBe('\ufffd  é字😀')
})
