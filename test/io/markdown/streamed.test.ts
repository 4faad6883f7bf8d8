import { expect, test } from 'vitest'
import { openPrinter, print } from './print.ts'

/** Opens a printer. `add` returns the text that the printer writes for each piece. */
async function open() {
  const spinners: string[] = []
  const { printer, written } = await openPrinter({
    waiting: { show: (text) => void spinners.push(String(text)) },
  })
  const take = () => written.splice(0).join('')
  async function add(pieces: readonly string[]): Promise<string[]> {
    const added: string[] = []
    for (const piece of pieces) {
      printer.add(piece)
      await printer.write()
      added.push(take())
    }
    return added
  }
  return { printer, add, take, spinners }
}

/** The pieces of a stream, and the text that is printed after each piece. */
test.each([
  ['one¦ two¦ thr¦ee four\n¦\nfive six ', '¦one¦ two¦ three four\n¦\nfive six'],
  ['a **b¦ c¦** d¦ *e f* g ', 'a¦¦ b c¦ d e f g'],
  ['a `b *c¦ d` e¦. f ', 'a¦ b *c d¦ e. f'],
  ['a [b c](http¦://d.e/f¦) g ', 'a¦¦ b c (http://d.e/f) g'],
  ['a <b¦@c.d> e ¦&amp¦; f ', 'a¦ b@c.d e¦¦ & f'],
  [
    '- one two¦ three\n- fo¦ur five\n  - six ¦seven eight\n',
    '• one¦ two three\n¦• four five\n¦  ◦ six seven eight\n',
  ],
  ['1. one two\n\n¦   three four¦ five\n¦- x y\n', '1. one two\n¦\n   three¦ four five\n¦• x y\n'],
  ['中文¦**粗¦体**字¦。\n', '中¦¦文粗体¦字。\n'],
  ['*a\n¦🎉 b\n¦\n', '¦¦*a\n🎉 b\n'],
  ['one\n|a|b¦|\n¦|-|-|\n|1|2¦|\n¦\n', 'one\n¦¦¦¦a │ b\n──┼──\n1 │ 2\n'],
  ['|a b¦|\n¦c d¦ e\n', '¦¦|a b|\nc¦ d e\n'],
  ['# One two¦\nthree four ¦\n> a¦\n> b\n\n', '¦One two\nthree four¦\n¦│ a\n│ b\n'],
  ['one two\n``¦`\nco¦de\n¦```\nthree four ', 'one two\n¦¦  code\n¦three four'],
])(
  'Markdown layout prints each word of the stream %j as soon as no later text can change it',
  async (pieces, shown) => {
    expect(await (await open()).add(pieces.split('¦'))).toEqual(shown.split('¦'))
  },
)

test.each([
  '5 * 3 * 2 and more ',
  'a_b_c and more ',
  'a ~ b and more ',
  'a] b) and more ',
  'a < b & c and more ',
])('Markdown layout does not wait after a character that starts no Markdown: %j', async (text) => {
  expect(await (await open()).add([text])).toEqual([text.trimEnd()])
})

test.each(['*', '**', '_', '`', '[', '~~', '<a'])(
  'Markdown layout prints an unclosed %s of a stream as text after 200 characters',
  async (mark) => {
    const words = `${mark}x ${'word '.repeat(50)}`
    const { add, printer, take } = await open()
    const [before, after] = await add([words.slice(0, 190), words.slice(190)])
    expect(before).toBe('')
    expect(after).toMatch(/^\S+x word/)
    await printer.end()
    expect(before + (after as string) + take()).toBe(`${words.trimEnd()}\n`)
  },
)

test('Markdown layout prints the underline of a streamed heading as a rule', async () => {
  expect(await print('Title\n=====  \nx\n--\ny', { columns: 5 })).toBe('Title\n─────\nx\n─────\ny\n')
})

test('Markdown layout shows the spinner during an incomplete table, but not during an unfinished row', async () => {
  const { add, spinners } = await open()
  await add(['one two ', 'three **four ', 'five'])
  expect(spinners).toEqual([])
  await add(['**\n\n', '|a', '|b|\n', '|-|-|\n'])
  expect(new Set(spinners)).toEqual(new Set(['waiting for the rest of the table']))
})

test.each([
  ['a b **c d', 'a b', ' **c d\n'],
  ['- a b\n- c `d', '• a b\n• c', ' `d\n'],
  ['a b\n\n|a|\n|-|\n|b', 'a b\n', '\na\n─\nb\n'],
  ['```\na\nb', '  a\n', '  b\n'],
  ['a b ', 'a b', '\n'],
  ['a b\n', 'a b\n', ''],
])('Markdown layout prints the unfinished part of %j if the stream is cut', async (text, before, rest) => {
  const { add, printer, take } = await open()
  expect(await add([text])).toEqual([before])
  expect(printer.breakLine()).toBe(rest !== '')
  expect(take()).toBe(rest)
  expect(printer.breakLine()).toBe(false)
})
