import { describe, expect, test } from 'vitest'
import { print, printPieces } from './print.ts'

/** Returns colours as tags: `<1;35>text</>`. */
const tagColours = (text: string) => text.replace(/\x1b\[0m/g, '</>').replace(/\x1b\[([\d;]+)m/g, '<$1>')

const coloured = async (text: string) => tagColours(await print(text, { isColoured: true }))

test.each([
  ['# One\n## Two\n### Three', '<1;4;35>One</>\n<1;35>Two</>\n<1>Three</>\n'],
  ['#no heading\n####### nor this', '#no heading\n####### nor this\n'],
  ['**bold** *it* _it_ ***both*** ~~gone~~', '<1>bold</> <3>it</> <3>it</> <3;1>both</> <9>gone</>\n'],
  ['Wort**teil** foo**bar**baz', 'Wort<1>teil</> foo<1>bar</>baz\n'],
  ['**never closed\n\nnext', '**never closed\n\nnext\n'],
  ['`a` ``b`c`` `` ` `` `d', '<36>a</> <36>b`c</> <36>`</> `d\n'],
  ['`**x**` \\*y\\* C:\\new', '<36>**x**</> *y* C:\\new\n'],
  ['[text](https://a.b/c_d_e)', 'text<2;4> (https://a.b/c_d_e)</>\n'],
  ['[**a** b](https://a.b "title") x', '<1>a</> b<2;4> (https://a.b)</> x\n'],
  ['**a [b c](https://d.e) f**', '<1>a b c</><1;2;4> (https://d.e)</><1> f</>\n'],
  ['![c](d) [e] (f) [g](h i)', 'c<2;4> (d)</> [e] (f) [g](h i)\n'],
  ['[https://a.b](https://a.b) ends', '<2;4>https://a.b</> ends\n'],
  ['<https://a.b/_c_> and https://d.e/_f.', '<2;4>https://a.b/_c_</> and <2;4>https://d.e/_f</>.\n'],
  ['***a** b* **a *b* c**', '<3;1>a</><3> b</> <1>a </><1;3>b</><1> c</>\n'],
  ['- one *two three* four', '<36>• </>one <3>two three</> four\n'],
])('Markdown layout formats headings, emphasis, code and links: %j', async (text, shown) => {
  expect(await coloured(text)).toBe(shown)
})

test.each([
  ...['2 * 3 and a_b', 'The value of 2**10 is 1024.', 'Pass *args on.', 'The ```$HOME variable.', 'it`s'],
  ...['Call f(*args, **kwargs).', '**/*.js', '~5 to ~6, a~b~c, ~/x', '**', '`', 'a ** b', '5 * 3 * 2'],
  ...['if a<b and c>d', 'a <b>c</b> &amp &unknown; AT&T', 'a<bri>b', '#1 -1 +1 1.5', '[x] (y) ![', '*.js'],
  ...['a [b][c] d', 'snake_case_name', '{"a": [1]}', '|a|b|'],
])('Markdown layout prints a text without Markdown verbatim: %j', async (text) => {
  expect(await print(`a ${text}\nb`)).toBe(`a ${text}\nb\n`)
  expect(await print(text)).toBe(`${text}\n`)
})

test('Markdown layout prints HTML and other unsupported constructs as text', async () => {
  const text = '<div>\na\n</div>\n\n[a]: https://b.c "d"\n'
  expect(await print(text, { columns: 20 })).toBe(text)
})

const rule = '─'.repeat(80)

/** Texts and their layout, by the rule that they follow. */
const layouts: Record<string, [text: string, shown: string][]> = {
  'applies <br> and character references': [
    ['a<br>b<BR />c', 'a\nb\nc\n'],
    ['a<br>\nb `<br>`', 'a\nb <br>\n'],
    ['**a<br>b**', 'a\nb\n'],
    ['a\n\n<br>\n\nb', 'a\n\nb\n'],
    ['- a<br/>b', '• a\n  b\n'],
    ['&lt;b&gt; &amp;amp; &quot;x&quot; &#39;y&#x27; &mdash; &hellip; &rarr;', '<b> &amp; "x" \'y\' — … →\n'],
    ['x&nbsp;&copy; &eacute;&Omega;', 'x\u00a0© &eacute;&Omega;\n'],
    ['&#128512; &#x1F600; `&lt;` \\&lt;', '😀 😀 &lt; &lt;\n'],
    ['**&lt;** [a&amp;b](https://c.d/?e&amp;f=1)', '< a&b (https://c.d/?e&f=1)\n'],
    ['https://a.b/?c=1&amp;d=2', 'https://a.b/?c=1&d=2\n'],
    ['&#10;&#0;&#9;&#xd800;&#x110000;&constructor;', '&#10;&#0;&#9;&#xd800;&#x110000;&constructor;\n'],
    ['&#42;a&#42; &#x60;b&#x60;', '*a* `b`\n'],
    ['|a|\n|-|\n|&lt;x&gt;<br>y|', 'a\n───\n<x>\ny\n'],
    ['```\n&lt;<br>\n```', '  &lt;<br>\n'],
  ],
  'formats headings, lists, quotes, rules and code blocks': [
    ['- a\n- b\n  - c\n    - d\n+ e\n* f', '• a\n• b\n  ◦ c\n    ▪ d\n• e\n• f\n'],
    ['1. a\n   - b\n\n   more\n2) c', '1. a\n   ◦ b\n\n   more\n2) c\n'],
    ['- [x] done\n- [ ] open\n- [y] text\n1. [x] both', '• [x] done\n• [ ] open\n• [y] text\n1. [x] both\n'],
    ['- a\nlazy\n\nover', '• a\n  lazy\n\nover\n'],
    ['- \n- b', '•\n• b\n'],
    ['- ` `\n- b', '•\n• b\n'],
    ['> a\n> b\n>\n> > c\n\nd', '│ a\n│ b\n│\n│ │ c\n\nd\n'],
    ['- > a\n  > b\n- c', '• │ a\n  │ b\n• c\n'],
    ['> a\nlazy\n> - b\nlazy\n- c', '│ a\n│ lazy\n│ • b\n│   lazy\n• c\n'],
    ['> # a\nb\n\n> |a|\n> |-|\n> |1|\nc', '│ a\nb\n\n│ a\n│ ─\n│ 1\nc\n'],
    ['a\n\n\n\nb\n\n', 'a\n\nb\n'],
    ['a\n- b\n\nc\n# d\n> e', 'a\n• b\n\nc\nd\n│ e\n'],
    ['***\n- - -\n\n--', `${rule}\n${rule}\n\n--\n`],
    ['    a\n\n      b\n\nc', '  a\n\n    b\n\nc\n'],
    ['a\n    b  \nc\\\nd', 'a\nb\nc\nd\n'],
    ['```js\n  x\n\n\n# y\n```\nz', '    x\n\n\n  # y\nz\n'],
    ['~~~~\n```\n~~~\n~~~~~\na', '  ```\n  ~~~\na\n'],
    ['``` `x` ``` y', '`x` y\n'],
    ['    ```\na', '  ```\na\n'],
    ['- a\n  ```\n  b\n   c\n  ```\n- d', '• a\n    b\n     c\n• d\n'],
    ['- ```\n  a\n  ```\n- b', '•\n    a\n• b\n'],
    [
      '1. a\n   - b\n     ```\n     c\n     ```\n     d\n   - e\n\n2. f',
      '1. a\n   ◦ b\n       c\n     d\n   ◦ e\n\n2. f\n',
    ],
    ['> ```\n> a\n> ```\nb', '│   a\nb\n'],
    ['```\nnever closed\n- b', '  never closed\n  - b\n'],
  ],
  'expands a tab in an indentation to the next multiple of four columns': [
    ['Makefile:\n\n\tall:\n\t\tcc *.c -o a*b\n', 'Makefile:\n\n  all:\n  \tcc *.c -o a*b\n'],
    ['> a\n>\n>\t\tcode b*c*', '│ a\n│\n│     code b*c*\n'],
    ['- a\n\t- b\n\t\t- c\n- d', '• a\n  ◦ b\n    ▪ c\n• d\n'],
    ['-\ta\n\n\tb\n\n\t\tcode *c*', '• a\n\n  b\n\n    code *c*\n'],
    ['- a\n\n\t\tcode', '• a\n\n      code\n'],
    ['- a\n\n\t```\n\tb\n\t\tc\n\t```', '• a\n\n    b\n    \tc\n'],
    ['- a\n\n\t|x|y|\n\t|-|-|\n\t|1|2|', '• a\n\n  x │ y\n  ──┼──\n  1 │ 2\n'],
  ],
  'prints the number of a list item as written': [
    ['9) a\n10) b\n\n    para\n10) c', '9) a\n10) b\n\n    para\n10) c\n'],
  ],
  'accepts table rows with fewer or more cells than the header': [
    ['|a|b|\n|-|-|\n|1|2|3|\n', 'a │ b\n──┼───┼──\n1 │ 2 │ 3\n'],
    ['|a|b|c|\n|-|-|\n||\n|1|\n', 'a │ b │ c\n──┼───┼──\n\n1\n'],
    ['|a|\\|b|\n|-|-|\n', 'a │ |b\n──┼───\n'],
  ],
  'aligns rows even if the table header was already printed as text': [
    ['a b | c\n--- | ---\n1 | 2\n', 'a b | c\n────┼──\n1   │ 2\n'],
    ['x\na b | c\n:-- | --:\nlong one | 2\n\ny', 'x\na b | c\n─────────┼──\nlong one │ 2\n\ny\n'],
    ['- a b | c\n  --|--\n  1 | 2\n- d', '• a b | c\n  ────┼──\n  1   │ 2\n• d\n'],
    ['a b | c\n---\nd', `a b | c\n${'─'.repeat(80)}\nd\n`],
    ['a b | c\n- d', 'a b | c\n• d\n'],
  ],
}

test.each(Object.entries(layouts).flatMap(([rule, rows]) => rows.map((row) => [rule, ...row] as const)))(
  'Markdown layout %s: %j',
  async (_, text, shown) => {
    expect(await print(text)).toBe(shown)
    expect((await printPieces([...text])).join('')).toBe(shown)
  },
)

test.each([
  ['the last row of a word of 130 columns', `${'a'.repeat(130)} end.`, 50 + 5],
  ['the last row of a list item of 130 columns', `- ${'a'.repeat(130)} ${'b'.repeat(27)}`, 52 + 28],
  [
    'a new row after a list item of 130 columns if the word does not fit',
    `- ${'a'.repeat(130)} ${'b'.repeat(28)}`,
    52,
  ],
  ['a new row after a word of exactly two rows', `${'a'.repeat(160)} b`, 80],
])('Markdown layout puts the next word into %s', async (_, text, lastRow) => {
  const [line = ''] = (await print(text, { columns: 80 })).split('\n')
  expect(line.length % 80 || 80).toBe(lastRow % 80 || 80)
})

test.each([
  ['one two three', 7, 'one two\nthree\n'],
  ['one  two three', 8, 'one  two\nthree\n'],
  ['a longestword b', 7, 'a\nlongestword b\n'],
  ['a **b**c, d', 5, 'a bc,\nd\n'],
  ['- one two\n  - three four', 9, '• one two\n  ◦ three\n    four\n'],
  ['> one two', 7, '│ one\n│ two\n'],
  ['# one two', 5, 'one\ntwo\n'],
  ['日本語、日本語', 6, '日本\n語、日\n本語\n'],
  ['ab🎉 cd', 5, 'ab🎉\ncd\n'],
  ['```\none two three\n```', 5, '  one two three\n'],
  ['1. a\n   ```\n   b\n   ```\n   one two', 8, '1. a\n     b\n   one\n   two\n'],
])('Markdown layout wraps %j between words to rows of %j columns', async (text, columns, shown) => {
  expect(await print(text, { columns })).toBe(shown)
})

test('Markdown layout wraps at the current width of the terminal', async () => {
  let width = 80
  const options = { columns: () => width }
  const written = await printPieces(['one two three\n\n', 'one two three'], options, () => {
    width = 7
  })
  expect(written.join('')).toBe('one two three\n\none two\nthree\n')
})

const wide = '|a|b|\n|-|-|\n|one two three|four five six|\n'
test.each([
  ['|a|bb|\n|-|-:|\n|ccc|d|\n\nend', 80, 'a   │ bb\n────┼───\nccc │  d\n\nend\n'],
  ['|a|b|\n|:-:|-|\n|1\\|2|`x`|\n|long one|', 80, '   a     │ b\n─────────┼──\n  1|2    │ x\nlong one\n'],
  // A pipe in code is text if the row has too many cells otherwise.
  ['|a|b|\n|-|-|\n|`x || y`|`\\|`|', 80, 'a      │ b\n───────┼──\nx || y │ |\n'],
  ['|a|b|\n|-|-|\n|`x|y`|', 80, 'a  │ b\n───┼───\n`x │ y`\n'],
  ['a | b\n-|-\n1 | 2', 80, 'a │ b\n──┼──\n1 │ 2\n'],
  ['| a | b |\nno table', 80, '| a | b |\nno table\n'],
  ['|日本|b|\n|-|-|\n|x|y|', 80, '日本 │ b\n─────┼──\nx    │ y\n'],
  ['|a|b|\n|-|-|\n|one|x<br>y `<br>`|', 80, 'a   │ b\n────┼───────\none │ x\n    │ y <br>\n'],
  ['> |a|b|\n> |-|-|\n> |1|2|', 80, '│ a │ b\n│ ──┼──\n│ 1 │ 2\n'],
  [wide, 27, 'a            │ b\n─────────────┼─────────────\none two      │ four five\nthree        │ six\n'],
  [wide, 19, 'a        │ b\n─────────┼─────────\none two  │ four\nthree    │ five six\n'],
  [wide, 18, 'a: one two three\nb: four five six\n'],
  [`${wide}|1||\n`, 9, 'a: one\ntwo three\nb: four\nfive six\n\na: 1\nb:\n'],
  [
    '|a|b|\n|-|-|\n|one two|x averylongword|\n',
    23,
    'a       │ b\n────────┼──────────────\none two │ x\n        │ averylongword\n',
  ],
  ['|a|b|\n|-|-|\n|one two|averylongword|\n', 22, 'a: one two\nb: averylongword\n'],
  ['|a|`b c`|\n|-|-|\n', 3, 'a\nb c\n'],
  ['|a|b|\n|-|-|\n|one|\n|two|\n', 4, 'a:\none\nb:\n\na:\ntwo\n'],
])(
  'Markdown layout aligns a table, or prints a line per cell if the table is too wide: %j, %j columns',
  async (text, columns, shown) => {
    expect(await print(text, { columns })).toBe(shown)
  },
)

test('Markdown layout repeats the header of a table after 64 KiB', async () => {
  const row = `| ${'b'.repeat(94)} | c |\n`
  const table = `| a | b |\n|---|---|\n${row.repeat(700)}`
  const lines = (await print(table)).trimEnd().split('\n')
  expect(lines.filter((line) => /^a +│ b$/.test(line))).toHaveLength(2)
  expect(lines.filter((line) => /^b+ │ c$/.test(line))).toHaveLength(700)
  expect(lines.filter((line) => line.includes('|'))).toEqual([])
})

describe('Markdown blocks over 4,000 characters', () => {
  const long = `${'word '.repeat(799)}word`

  test('Markdown layout prints a quote over 4,000 characters line by line', async () => {
    const text = `> ${long.slice(7)}\n> **x**\n`
    const shown = `\x1b[2m│ \x1b[0m${long.slice(7)}\n\x1b[2m│ \x1b[0m\x1b[1mx\x1b[0m\n`
    expect(await print(text, { isColoured: true })).toBe(shown)
    expect((await printPieces(text.match(/.{1,700}/gs) ?? [], { isColoured: true })).join('')).toBe(shown)
  })

  test('Markdown layout prints text verbatim if it is nested in 13 or more quotes', async () => {
    const bar = '\x1b[2m│ \x1b[0m'
    const rest = `${'> '.repeat(48)}*x*`
    const text = `${'> '.repeat(12)}${rest}\n\n*z*`
    const shown = `${bar.repeat(12)}${rest}\n\n\x1b[3mz\x1b[0m\n`
    expect(await print(text, { columns: 20, isColoured: true })).toBe(shown)
  })

  test.each([
    [3999, long],
    [7999, `${long} ${long}`],
  ])('Markdown layout wraps a line of %i characters', async (length, text) => {
    expect(text).toHaveLength(length)
    const lines = (await print(`${text}\n*next*`, { columns: 20 })).split('\n')
    expect(lines.filter((line) => line.length > 20)).toEqual([])
    expect(lines.slice(-2)).toEqual(['next', ''])
  })

  test('Markdown layout prints the chunks of a long line unchanged', async () => {
    const written = await printPieces(Array.from({ length: 30 }, () => long))
    expect(written.join('')).toBe(`${long.repeat(30)}\n`)
  })

  test('Markdown layout prints a code block after a line over 4,000 characters', async () => {
    expect(await print(`${long}\nabc\n\`\`\`\n*x*\n\`\`\`\n`)).toBe(`${long}\nabc\n  *x*\n`)
  })
})

test('Markdown layout prints each line of code in the same colour, in any language', async () => {
  const shown = '  <36>+const a</>\n\n  <36>// b</>\n'
  for (const language of ['', 'js', 'diff', '__proto__'])
    expect(await coloured(`\`\`\`${language}\n+const a\n\n// b\n\`\`\`\n`)).toBe(shown)
})
