// Prints the lines and tokens of `src`, without blanks and comments, by room and compared with the last
// release. `npm run size -- --write` saves the current numbers as the last release.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

const file = join(import.meta.dirname, 'size.json')
const source = join(import.meta.dirname, '../src')

const piece =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/(?![*/\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*(?=[\s.,;)\]]|$)|[\w$#]+|\S/g

// A string is one token. In a template or an expression each word and each sign is one.
const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[\w$#]+|[^\w\s]/g

function measure(text) {
  const lines = new Set()
  let tokens = 0
  let line = 0
  let from = 0
  for (const { 0: found, index } of text.matchAll(piece)) {
    for (let end = text.indexOf('\n', from); end >= 0 && end < index; end = text.indexOf('\n', from)) {
      line++
      from = end + 1
    }
    if (/^\/[/*]/.test(found)) continue
    tokens += found.match(token).length
    for (let below = found.split('\n').length - 1; below >= 0; below--) lines.add(line + below)
  }
  return { lines: lines.size, tokens }
}

const rooms = { all: { lines: 0, tokens: 0 } }
for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
  if (!entry.name.endsWith('.ts')) continue
  const path = join(entry.parentPath, entry.name)
  const [room, inner] = relative(source, path).split(sep)
  const name =
    inner === undefined ? '.' : room === 'sessions' && !inner.endsWith('.ts') ? `${room}/${inner}` : room
  const { lines, tokens } = measure(readFileSync(path, 'utf8'))
  for (const key of ['all', name]) {
    rooms[key] ??= { lines: 0, tokens: 0 }
    rooms[key].lines += lines
    rooms[key].tokens += tokens
  }
}

if (process.argv.includes('--write')) {
  const text = Object.entries(rooms).map(
    ([name, size]) => `  ${JSON.stringify(name)}: ${JSON.stringify(size)}`,
  )
  writeFileSync(file, `{\n${text.join(',\n')}\n}\n`)
}
const last = JSON.parse(readFileSync(file, 'utf8'))
const names = [...new Set([...Object.keys(rooms), ...Object.keys(last)])]
const sizeOf = (all, name) => all[name] ?? { lines: 0, tokens: 0 }
const rows = names.sort((one, other) => sizeOf(rooms, other).lines - sizeOf(rooms, one).lines)
process.stdout.write(`${'room                       lines  before   tokens  before'}\n`)
for (const name of rows) {
  const [now, before] = [sizeOf(rooms, name), sizeOf(last, name)]
  const cells = [now.lines, before.lines, now.tokens, before.tokens].map((count) => String(count).padStart(8))
  process.stdout.write(`${name.padEnd(24) + cells.join('')}\n`)
}
