import { expect, test } from 'vitest'
import { run } from '../harness/run.ts'

// The class URL parses a backslash as a slash, but curl parses it as part of the user name. So parley and the
// command of --curl would connect to different hosts.
test.each([
  ['--base-url', 'chat hi', 'https://gateway.test\\@evil.test'],
  ['--agents-url', 'events list -s sesn_1', 'https://agents.test\\@evil.test'],
])('parley exits with 3 if the value of %s has a backslash: %s %s', async (flag, words, address) => {
  for (const how of ['--dry-run', '--curl', '-q']) {
    const { code, out, err, requests } = await run([...words.split(' '), flag, address, how])
    expect({ code, out, requests }).toEqual({ code: 3, out: '', requests: [] })
    expect(err).toContain('must have only a host, a port and a path')
  }
})
