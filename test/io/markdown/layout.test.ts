import { describe, expect, test } from 'vitest'
import { print, printPieces } from './print.ts'

/** Colours as tags: `<1;35>text</>`. */
const tagged = (text: string) => text.replace(/\x1b\[0m/g, '</>').replace(/\x1b\[([\d;]+)m/g, '<$1>')

const coloured = async (text: string, columns?: number) =>
  tagged(await print(text, { isColoured: true, columns }))

test.each([
  ['# One\n## Two\n### Three', '<1;4;35>One</>\n<1;35>Two</>\n<1>Three</>\n'],
  ['#no heading\n####### nor this', '#no heading\n####### nor this\n'],
  ['**bold** *it* _it_ ***both*** ~~gone~~', '<1>bold</> <3>it</> <3>it</> <1;3>both</> <9>gone</>\n'],
  ['a **b c** d', 'a <1>b c</> d\n'],
  ['Wort**teil** foo**bar**baz', 'Wort<1>teil</> foo<1>bar</>baz\n'],
  ['foo*bar*baz *foo*bar foo*bar*', 'foo<3>bar</>baz <3>foo</>bar foo<3>bar</>\n'],
  ['*one foo*bar two* **one foo**bar', '<3>one foo*bar two</> <1>one foo</>bar\n'],
  ['## Closed ##\n# C #1 # ', '<1;35>Closed</>\n<1;4;35>C #1</>\n'],
  ['# C#\n# A # b\n# ##\nx #', '<1;4;35>C#</>\n<1;4;35>A # b</>\n\nx #\n'],
  ['Title\n=====  \ntext', `Title\n<2>${'─'.repeat(80)}</>\ntext\n`],
  [
    'Title\n=\n- item\n===\n\n> quote\n> ==\n> ==',
    `Title\n<2>${'─'.repeat(80)}</>\n<36>•</> item\n  ===\n\n<2>│ </>quote\n<2>│ ${'─'.repeat(78)}</>\n<2>│ </>==\n`,
  ],
  ['==\n\na == b\n== c\n=d', '==\n\na == b\n== c\n=d\n'],
  ['**one\ntwo** three', '**one\ntwo** three\n'],
  ['**never closed\n\nnext', '**never closed\n\nnext\n'],
  ['2*3*4, 5 * 6, snake_case_name, __init__.py', '2*3*4, 5 * 6, snake_case_name, __init__.py\n'],
  ['__one word__ and __two words__', '<1>one word</> and <1>two words</>\n'],
  ['这是**重点：**内容', '这是<1>重点：</>内容\n'],
  ['`a` ``b`c`` `` ` `` `d', '<36>a</> <36>b`c</> <36>`</> `d\n'],
  ['`**x**` \\*y\\* C:\\new', '<36>**x**</> *y* C:\\new\n'],
  ['one\\\ntwo C:\\', 'one\\\ntwo C:\\\n'],
  ['[text](https://a.b/c_d_e)', 'text<2;4> (https://a.b/c_d_e)</>\n'],
  ['[**a** b](https://a.b "title") x', '<1>a</> b<2;4> (https://a.b)</> x\n'],
  ['**a [b c](https://d.e) f**', '<1>a b c</><1;2;4> (https://d.e)</><1> f</>\n'],
  ['a[0](x) [b] ![c](d) [e] (f) [g](h i)', 'a0<2;4> (x)</> [b] c<2;4> (d)</> [e] (f) [g](h i)\n'],
  ['[https://a.b](https://a.b) ends', '<2;4>https://a.b</> ends\n'],
  ['[a [b](https://c.d) e', '[a b<2;4> (https://c.d)</> e\n'],
  ['<https://a.b/_c_> and https://d.e/_f_.', '<2;4>https://a.b/_c_</> and <2;4>https://d.e/_f</>_.\n'],
  ['a <b>c</b> 1 < 2', 'a <b>c</b> 1 < 2\n'],
  ['**a b** _c d_ ~~e f~~', '<1>a b</> <3>c d</> <9>e f</>\n'],
  ['**a `b` c** `d e`.', '<1>a </><1;36>b</><1> c</> <36>d e</>.\n'],
  ['***a** b* **a *b* c**', '<3;1>a</><3> b</> <1>a </><1;3>b</><1> c</>\n'.replace('3;1', '1;3')],
  ['**a *b*** and ***c* d**', '<1>a </><1;3>b</> and <1;3>c</><1> d</>\n'],
  ['- *nix\n- b', '<36>•</> *nix\n<36>•</> b\n'],
  [
    '- one *two three* four\n- **five: six** seven',
    '<36>•</> one <3>two three</> four\n<36>•</> <1>five: six</> seven\n',
  ],
  ['**.NET**, **.env** and **?**', '<1>.NET</>, <1>.env</> and <1>?</>\n'],
  ['Press **Ctrl**+**C**, **A**/**B**', 'Press <1>Ctrl</>+<1>C</>, <1>A</>/<1>B</>\n'],
])('words: %j', async (text, shown) => {
  expect(await coloured(text)).toBe(shown)
})

describe('nothing is left out that may be no mark', () => {
  test.each([
    ...['The value of 2**10 is 1024.', 'Pass *args on.', 'The ```$HOME variable.', 'Match __init to it.'],
    ...[
      'Call f(*args, **kwargs).',
      '**/*.js',
      'src/**/*.ts, **/foo/**, *.js,*.ts, *foo*.js',
      'a*b*c, 2**3**4, a__b__c',
    ],
    ...['/*b*/ and /* c */', '__init__ and __name__', '~~/x, ~/y, a~~b', '**', '`', '*_* ** *', '**bold* no'],
    ...[
      'C:\\new and C:\\',
      'std::vector<std::string> a;',
      'if a<b and c>d',
      'a<br>b &lt; &amp; AT&T',
      '#1 -1 +1 1.5',
    ],
    ...['base**exp + base**exp', 'Pass *args on, a*b', 'a*b*c*d foo_bar_baz foo*b*c', 'foo*bar_baz*'],
    ...['2*x and y*3', 'a ** b', '5 * 3 * 2', 'it`s', '[x] (y) ![', '====', '*.*', '**kwargs)'],
  ])('%j', async (text) => {
    expect(await print(`a ${text}\nb`)).toBe(`a ${text}\nb\n`)
    expect(await print(text)).toBe(`${text}\n`)
  })

  test('escapes show the mark', async () => {
    expect(await print('\\*a\\* \\_b\\_ \\`c\\` 2\\*\\*3 a\\\\b')).toBe('*a* _b_ `c` 2**3 a\\b\n')
  })

  test('a cell, of which all is known, shows no mark that has a partner', async () => {
    const shown = await coloured('|**a b**|\n|-|\n|x `c d` *e (_f g_)* 2**3 **h i|')
    const cell = 'x <36>c d</> <3>e (f g)</> 2**3 **h i'
    expect(shown.split('\n')).toEqual(['<1;1>a b</>', `<2>${'─'.repeat(24)}</>`, cell, ''])
  })

  test('a break in a cell is one only outside of code', async () => {
    expect(await print('|a|\n|-|\n|`<br>` x<br>y \\<br>|')).toBe('a\n──────\n<br> x\ny <br>\n')
  })
})

describe('blocks', () => {
  test.each([
    ['- a\n- b\n  - c\n    - d\n+ e\n* f', '• a\n• b\n  ◦ c\n    ▪ d\n• e\n• f\n'],
    ['1. a\n   - b\n\n   more\n2) c', '1. a\n   ◦ b\n\n   more\n2) c\n'],
    ['1. a\n  - careless\n    - more so\n2. b', '1. a\n   ◦ careless\n     ▪ more so\n2. b\n'],
    ['- [x] done\n- [ ] open\n- [y] text\n- [link](u)', '☑ done\n☐ open\n• [y] text\n• link (u)\n'],
    ['- > [x] quoted\n\n> - [x] done', '• │ [x] quoted\n\n│ ☑ done\n'],
    ['- a\nlazy\n\nover', '• a\n  lazy\n\nover\n'],
    ['-a\n1.b\n1986x\n- \n- b', '-a\n1.b\n1986x\n•\n• b\n'],
    ['> a\n> b\n>\n> > c\n\nd', '│ a\n│ b\n│\n│ │ c\n\nd\n'],
    ['- > a\n  > b\n- c', '• │ a\n  │ b\n• c\n'],
    ['> - a\n>   - b', '│ • a\n│   ◦ b\n'],
    ['a\n\n\n\nb\n\n', 'a\n\nb\n'],
    ['---\n***\n- - -\n--', `${'─'.repeat(80)}\n${'─'.repeat(80)}\n${'─'.repeat(80)}\n--\n`],
    ['```js\n  x\n\n\n# y\n```\nz', '    x\n\n\n  # y\nz\n'],
    ['```\nnever closed\n\n', '  never closed\n'],
    ['~~~~\n```\n~~~\n~~~~~\na', '  ```\n  ~~~\na\n'],
    ['- a\n  ```\n  b\n   c\n  ```\n- d', '• a\n    b\n     c\n• d\n'],
    ['- ```\n  a\n  ```', '•\n    a\n'],
    ['> ```\n> a\nb', '│   a\nb\n'],
    ['``` `x` ``` y', '`x` y\n'],
    ['    a\n\n      b\n\nc', '  a\n\n    b\n\nc\n'],
    ['a\n    b', 'a\nb\n'],
  ])('%j', async (text, shown) => {
    expect(await print(text)).toBe(shown)
  })
})

describe('tables', () => {
  test.each([
    ['|a|bb|\n|-|-:|\n|ccc|d|\nend', undefined, 'a   │  bb\n────┼────\nccc │   d\nend\n'],
    [
      '|a|b|\n|:-:|-|\n|1\\|2|`x`|\n|long one|',
      undefined,
      '   a     │ b\n─────────┼────\n  1|2    │ x\nlong one\n',
    ],
    ['| a | b |\nno table', undefined, '| a | b |\nno table\n'],
    ['| a | b |\n|---|\n', undefined, '| a | b |\n|---|\n'],
    ['|a|b|\n|-|-|\n|1|2|3|', undefined, 'a   │ b\n────┼──────\n1   │ 2 | 3\n'],
    ['|日本|b|\n|-|-|\n|x|y|', undefined, '日本 │ b\n─────┼────\nx    │ y\n'],
    ['|a|b|\n|-|-|\n|one|x<br>y|', 13, 'a   │ b\n────┼────\none │ x\n    │ y\n'],
    ['|a|b|\n|-|-|\n|one two|x|', 13, 'a       │ b\n────────┼────\none two │ x\n'],
    ['|a|b|\n|-|-|\n|one *two*|`x y`|\nend', 12, '|a|b|\n|-|-|\n|one *two*|`x y`|\nend\n'],
    ['> |a|b|\n> |-|-|\n> |one two|x|', 14, '│ |a|b|\n│ |-|-|\n│ |one two|x|\n'],
    ['|a|b|\n|-|-|\n', undefined, 'a   │ b\n────┼────\n'],
    ['> |a|\n> |-|\n> |1|\n\n- |b|', undefined, '│ a\n│ ───\n│ 1\n\n• |b|\n'],
  ])('%j in %j columns', async (text, columns, shown) => {
    expect(await print(text, { columns })).toBe(shown)
  })

  test('a table is as wide as the terminal is by then, which may have been made narrower', async () => {
    const widths = [80, 20]
    const table = '| some | more |\n|-|-|\n| a long cell | another |\n\n'
    const options = { columns: () => widths.shift() ?? 20 }
    expect(await print(table + table, options)).toBe(
      `some        │ more\n────────────┼────────\na long cell │ another\n\n${table.trimEnd()}\n`,
    )
  })

  test('one that is longer than what is kept back goes on in its widths', async () => {
    const rows = Array.from({ length: 20_000 }, (_, at) => `| ${10_000 + at} | ${at % 7} |\n`)
    const written = await printPieces(['| row | b |\n|--|--|\n', ...rows])
    expect(written.findIndex((text) => text.includes('10019'))).toBeLessThan(10_000)
    expect(written.join('').split('\n').slice(19_990, 19_991)).toEqual(['29988 │ 3'])
  })
})

test('lines are left to the terminal to wrap', async () => {
  const text = `- ${'word '.repeat(100)}\n  more\n`
  expect(await print(text, { columns: 20 })).toBe(`• ${'word '.repeat(100).trimEnd()}\n  more\n`)
})

describe('a span that is too long, or has no end on its line, is text as it came', () => {
  const long = 'word '.repeat(41).trimEnd()
  test.each([
    [`**${long}** b`, `**${long}** b\n`],
    [`**${long.slice(0, 199)}** b`, `<1>${long.slice(0, 199)}</> b\n`],
    [`\`${long}\` b`, `\`${long}\` b\n`],
    [`[${long}](https://a.b) b`, `[${long}](<2;4>https://a.b</>) b\n`],
    [
      `**a [b](https://c.d/${'e'.repeat(300)}) f**`,
      `<1>a b</><1;2;4> (https://c.d/${'e'.repeat(300)})</><1> f</>\n`,
    ],
    ['*a `b* c` d', '*a <36>b* c</> d\n'],
    ['[a](https://b', '[a](<2;4>https://b</>\n'],
  ])('%j', async (text, shown) => {
    expect(await coloured(text)).toBe(shown)
  })
})

test("a link is the terminal's own if it takes that, and the address is one that it may be told", async () => {
  const options = { isColoured: true, links: 'hyperlink' as const }
  const link = (address: string, text: string) => `\x1b]8;;${address}\x1b\\${text}\x1b]8;;\x1b\\`
  expect(await print('[a b](https://a.b/c?d=e) c', options)).toBe(`${link('https://a.b/c?d=e', 'a b')} c\n`)
  expect(await print('[a](javascript:x) [b](https://ä.b)', options)).toBe(
    'a\x1b[2;4m (javascript:x)\x1b[0m b\x1b[2;4m (https://ä.b)\x1b[0m\n',
  )
})

describe('what has come is shown', () => {
  test.each([
    [
      ['one', ' two', ' three'],
      ['one', ' two', ' three'],
    ],
    [
      ['**one', ' two**', ' three'],
      ['', '', 'one two three'],
    ],
    [
      ['`one', ' two` ', 'three'],
      ['', '', 'one two three'],
    ],
    [
      ['[one', ' two', '](x) three'],
      ['', '', 'one two (x) three'],
    ],
    [
      ['2 *', ' 3 a_', 'b [x', '] y'],
      ['2 ', '* 3 a', '_b ', '[x] y'],
    ],
    [
      ['a **b', 'word '.repeat(41), 'c'],
      ['a ', `**b${'word '.repeat(41).trimEnd()}`, ' c'],
    ],
    [
      ['- one', ' two', ' three'],
      ['• one', ' two', ' three'],
    ],
    [
      ['# one', ' two', ' three'],
      ['one', ' two', ' three'],
    ],
    [
      ['```\none', '\ntwo', '\n'],
      ['', '  one\n', '  two\n'],
    ],
    [
      ['日', '本', '語'],
      ['日', '本', '語'],
    ],
  ])('of %j', async (pieces, shown) => {
    const written = await printPieces(pieces)
    expect(written.slice(0, pieces.length)).toEqual(shown)
  })
})

describe('code is coloured', () => {
  test.each([
    [
      'js',
      '/* a\nb */ const x = `y\nz`',
      ['<2>/* a</>', '<2>b */</> <35>const</> x = <32>`y</>', '<32>z`</>'],
    ],
    ['python', '"""a\nb""" # c', ['<32>"""a</>', '<32>b"""</> <2># c</>']],
    ['sh', "echo 'a\nif b", ["echo <32>'a</>", '<35>if</> b']],
    ['json', '{"a": 1}', ['{<36>"a"</>: <33>1</>}']],
    ['diff', '+a\n-b\n c', ['<32>+a</>', '<31>-b</>', ' c']],
    ['__proto__', 'a', ['<36>a</>']],
  ])('%s', async (language, code, lines) => {
    const shown = lines.map((line) => `  ${line.replace(/^ /, ' ')}\n`).join('')
    expect(await coloured(`\`\`\`${language}\n${code}\n\`\`\`\n`)).toBe(shown)
  })
})

describe('how long a span may be, however it comes', () => {
  const address = `https://a.b/${'c'.repeat(900)}`
  const link = `[d](${address})`
  const shown = `d<2;4> (${address})</>`
  const inBold = `<1>d</><1;2;4> (${address})</>`
  const run = (mark: string) => `x ${mark.repeat(203)}y${mark}${mark} z`

  test.each([
    ['an address does not count', `**${link}** e`, `${inBold} e\n`],
    ['but two of the longest are too many', `**${link} ${link}** e`, `**${shown} ${shown}** e\n`],
    ['a run of stars', run('*'), `${run('*')}\n`],
    ['a run of underscores', run('_'), `${run('_')}\n`],
    ['a run of tildes', run('~'), `${run('~')}\n`],
    ['a run of backticks', run('`'), `${run('`')}\n`],
    ['as many backticks', `${'`'.repeat(201)}y${'`'.repeat(201)}`, `${'`'.repeat(201)}y${'`'.repeat(201)}\n`],
    ['fewer backticks', `x ${'`'.repeat(200)}y${'`'.repeat(200)}`, 'x <36>y</>\n'],
  ])('%s', async (_, text, expected) => {
    for (const size of [1, 3, 10, 201, 5000]) {
      const pieces = text.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
      const written = tagged((await printPieces(pieces, { isColoured: true })).join(''))
      expect(written).toBe(expected)
    }
  })
})
