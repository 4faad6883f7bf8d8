import { test } from 'vitest'
import { expectLinearWork } from '../../harness/steps.ts'
import { print, printPieces } from './print.ts'

const units = [
  ...'* _ ` ~~ [ ]( [a]( < <a: h http:// | > - 1 # \\ a 日'.split(' '),
  ...['**a ', '`a ', '|a|\n|-|\n', '> ', '- ', '1. ', '```\n', '\n', ' ', '\t', 'a ', '- - ', '  - a\n'],
]
const inCode = ['<a', '"', '`', '/*', '[', '${', '<a\n', '/*\n']

test.each([
  ...units.map((unit) => ['a text', unit, ''] as const),
  ...inCode.map((unit) => ['a code block', unit, '```html\n'] as const),
])('Markdown layout takes linear time for %s of repeated %j', (_, unit, start) =>
  expectLinearWork((size) => print(start.padEnd(size, unit), { columns: 80, isColoured: true })),
)

const moreInChunks = [
  ...'~ *** *a \\*'.split(' '),
  ...['*a* ', '**a* ', '*a ', '`a ``b ', '[a ', '<a ', '- 1. ', '- [ ] ', '![a](b "c', '| a\n', '> a\n'],
]
const link = `[a](http://b.c/${'d'.repeat(980)})`

test.each([
  ...[...units, ...moreInChunks].map((unit) => [unit, unit] as const),
  ['a link with a long address', link],
  ['an asterisk before a link with a long address', `*${link}`],
] as const)('Markdown layout takes linear time for repeated %j that arrive in chunks', async (_, unit) => {
  for (const start of ['', 'a *']) {
    await expectLinearWork((size) => {
      const text = start.padEnd(size, unit)
      const options = { columns: 80, isColoured: true }
      return printPieces(text.match(/.{1,4}/gs) ?? [], options)
    })
  }
})
