// Counts phrases that a reader must read twice in comments, messages (string literals of three or more words)
// and prose. `npm run words` fails above the limits below, `npm run words src` only above those for src.
// `--list` prints each place. The phrases are symptoms: write by the style of the project, not until the
// count is zero.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Maximum phrases per 100 words, and maximum share of comments that start with a fragment. */
const limits = {
  src: { comments: 0.15, fragments: 0.04, messages: 0.15, prose: 0.2 },
  test: { comments: 0.25, fragments: 0.06, messages: 0.25, prose: 0.3 },
}

const phrases = [
  String.raw`\b(is|are) (told|said|asked|asked for|held|given up|had|meant|begun|looked)\b`,
  String.raw`\bgo(es)? on\b`,
  String.raw`\bway on\b`,
  String.raw`\bcame to\b`,
  String.raw`\bcomes? (back|to (a |its )?rest)\b`,
  String.raw`\bstands?\b`,
  String.raw`\blies in\b`,
  String.raw`\bis no (?!longer\b)[a-z]+\b`,
  String.raw`\bwhoever\b`,
  String.raw`\bof its own\b`,
  String.raw`\bin place of\b`,
  String.raw`\bso (many|much|often|long)\b`,
  String.raw`\blife signs?\b`,
  String.raw`\bforward clock\b`,
  String.raw`\bspelling of\b`,
  String.raw`(^|[.:;] )what (it|is|was|came|comes|has|they|does|a|the)\b`,
  String.raw`\ball that\b`,
  String.raw`\bsuch a\b`,
  String.raw`\bby then\b`,
  String.raw`\bfor ever\b`,
  String.raw`\bof (many|which|whom)\b`,
  String.raw`\bas long as\b`,
  String.raw`\bas (they|it) (are|were|came)\b`,
  String.raw`\b(brings?|brought)\b`,
  String.raw`\btakes? up\b`,
  String.raw`\b(that|those) of\b`,
  String.raw`\bas before\b`,
  String.raw`\bbeside\b`,
  String.raw`\bone that\b`,
  ', for (it|they|a|an|the) ',
].map((source) => new RegExp(source, 'gi'))

const fragment = /^(What|Whether|How|Of|By|Who|Whom|Whose|Which|Where)\b/

const squeeze = (text) => text.replace(/\s+/g, ' ').trim()

const countWords = (text) => text.split(' ').length

function* listFiles(path) {
  if (/(^|\/)(node_modules|\.git|dist)(\/|$)/.test(path)) return
  if (statSync(path).isDirectory()) for (const name of readdirSync(path)) yield* listFiles(join(path, name))
  else if (/\.(ts|js|mjs|cjs|md|txt)$/.test(path) && !path.endsWith('.d.ts')) yield path
}

function listComments(text) {
  const blocks = [...text.matchAll(/\/\*\*?(?!\/)([\s\S]*?)\*\//g)].map(([, body]) =>
    squeeze(body.replace(/^\s*\*+ ?/gm, '')),
  )
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const start = /^\s*\/\/(?!\/) ?(.*)$/.exec(lines[at])
    if (!start) continue
    const parts = [start[1]]
    while (/^\s*\/\/ ?/.test(lines[at + 1] ?? '')) parts.push(lines[++at].replace(/^\s*\/\/ ?/, ''))
    blocks.push(squeeze(parts.join(' ')))
  }
  return blocks.filter((comment) => countWords(comment) >= 4)
}

const listMessages = (text) =>
  [
    ...text
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/^\s*\/\/.*$/gm, '')
      .matchAll(/'((?:[^'\\\n]|\\.){12,})'|`((?:[^`\\]|\\.){12,}?)`/g),
  ]
    .map(([, plain, template]) => squeeze((plain ?? template).replace(/\$\{[^}]*\}/g, 'X')))
    .filter((message) => /[a-z]+ [a-z]+ [a-z]+/.test(message) && !/[;{}]|=>/.test(message))

/** Returns the paragraphs of a text without its blocks of code. */
const listParagraphs = (text) =>
  text
    .replace(/^```[\s\S]*?^```/gm, '')
    .split(/\n\s*\n/)
    .map((block) =>
      block
        .split('\n')
        .filter((line) => !/^( {4}|\t| {2}[a-z$#{-])/.test(line))
        .join(' '),
    )
    .map(squeeze)
    .filter((paragraph) => countWords(paragraph) >= 4)

/** Returns the counts of each kind of text under a path. */
function measure(path, isListing) {
  const counts = {}
  const add = (kind, file, texts) => {
    counts[kind] ??= { texts: 0, words: 0, phrases: 0, fragments: 0 }
    for (const text of texts) {
      const hits = phrases.flatMap((phrase) => [...text.matchAll(phrase)].map(([hit]) => hit.trim()))
      const isFragment = kind === 'comments' && fragment.test(text)
      counts[kind].texts++
      counts[kind].words += countWords(text)
      counts[kind].phrases += hits.length
      counts[kind].fragments += isFragment ? 1 : 0
      if (isListing && (isFragment || hits.length > 0))
        process.stdout.write(
          `${file}: ${[...(isFragment ? ['[fragment]'] : []), ...hits].join(', ')}: ${text.slice(0, 160)}\n`,
        )
    }
  }
  for (const file of listFiles(path)) {
    const text = readFileSync(file, 'utf8')
    if (/\.[cm]?[tj]s$/.test(file)) {
      add('comments', file, listComments(text))
      add('messages', file, listMessages(text))
    } else add('prose', file, listParagraphs(text))
  }
  return counts
}

const args = process.argv.slice(2)
const isListing = args.includes('--list')
const paths = args.filter((arg) => arg !== '--list')

// `| head` may close stdout.
process.stdout.on('error', () => process.exit())

for (const path of paths.length > 0 ? paths : Object.keys(limits)) {
  const limit = limits[path] ?? {}
  for (const [kind, { texts, words, phrases: hits, fragments }] of Object.entries(measure(path, isListing))) {
    const share = (100 * hits) / Math.max(words, 1)
    const isOver = share > limit[kind] || (kind === 'comments' && fragments / texts > limit.fragments)
    if (isOver) process.exitCode = 1
    const line = `${path}, ${kind}: ${share.toFixed(2)} phrases per 100 words, ${((100 * fragments) / Math.max(texts, 1)).toFixed(0)} % fragments`
    process.stdout.write(`${line}${isOver ? `, over ${limit[kind]}` : ''}\n`)
  }
}
