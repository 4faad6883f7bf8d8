import { expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'

const page = answering('<!doctype html><title>Sign in</title>', { headers: { 'content-type': 'text/html' } })
const redirect = answering('', { status: 302, headers: { location: 'https://login.test/' } })

const base = 'http://127.0.0.1:9'
const env = { PARLEY_BASE_URL: base, PARLEY_AGENTS_URL: base, PARLEY_IMAGE_MODEL: 'm' }
const gateway = /the URL was \S+, from baseUrl \(PARLEY_BASE_URL\)/
const agents = /the URL was \S+, from agentsUrl \(PARLEY_AGENTS_URL\)/
const uncertain = /the event may have been accepted: check with .*\n.*the URL was \S+, from agentsUrl/

test.each([
  ['chat hi', gateway, gateway],
  ['chat hi --stream', gateway, gateway],
  ['image fox', gateway, gateway],
  ['api gateway /x', undefined, gateway],
  ['sessions list', agents, agents],
  ['events list -s s', agents, agents],
  ['events follow -s s', agents, agents],
  ['events send hi -s s', uncertain, agents],
])('after a web page or redirect, %s names the setting of the address', async (line, onPage, onRedirect) => {
  const argv = [...line.split(' '), '--no-stdin']
  const redirected = await run(argv, { exchange: redirect, env })
  expect(redirected).toMatchObject({ code: 4, err: expect.stringMatching(onRedirect) })
  if (!onPage) return
  const paged = await run(argv, { exchange: page, env })
  expect(paged).toMatchObject({ code: 8, err: expect.stringMatching(onPage) })
})

const sending = ['chat hi', 'chat hi --stream', 'image fox', 'events send hi -s s']
test.each(sending)('after a web page with status 200, `sent` of "%s" is "unknown"', async (line) => {
  const { err } = await run([...line.split(' '), '--no-stdin', '--errors', 'json'], { exchange: page, env })
  expect(JSON.parse(err).error).toMatchObject({ exit: 8, sent: 'unknown', safeToRetry: false })
})
